//! BBR version 3 in floating point: the pseudo-code of draft-ietf-ccwg-bbr-06, with the draft's names and the sections beside it. It sees what
//! leaves and what is acknowledged, and computes everything else by itself. Volumes are bytes, rates bytes in a second, times nanoseconds.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

const INFINITY: f64 = f64::INFINITY;
const SECOND: i64 = 1_000_000_000;

/// A segment, with the packet state of 4.1.2.1.2, which those that left at once have in common.
#[derive(Clone, Debug)]
pub struct Packet {
    pub left: i64,
    pub right: i64,
    pub send_time: i64,
    delivered: f64,
    delivered_time: i64,
    first_send_time: i64,
    is_app_limited: bool,
    tx_in_flight: f64,
    lost: f64,
    again: bool,
    acked: bool,
    pub is_lost: bool,
}

/// What of the transport an acknowledgment's handling depends on (C), beside what the model counts.
pub struct Transport {
    pub now: i64,
    pub min_rtt: i64,
    pub is_limited: bool,
    pub no_unsent_data: bool,
    pub in_recovery: bool,
    /// What PickProbeWait draws, if it is asked.
    pub drawn: (f64, i64),
}

#[derive(Default)]
struct RateSample {
    has_data: bool,
    rtt: Option<i64>,
    prior_delivered: f64,
    prior_time: i64,
    send_time: i64,
    packet_id: i64,
    is_app_limited: bool,
    send_elapsed: i64,
    ack_elapsed: i64,
    delivered: f64,
    delivery_rate: f64,
    newly_acked: f64,
    tx_in_flight: f64,
    prior_lost: f64,
    lost: f64,
}

pub struct Model {
    smss: f64,
    initial_cwnd: f64,
    pub packets: Vec<Packet>,
    una: i64,
    rs: RateSample,
    // C
    pub delivered: f64,
    pub lost: f64,
    delivered_time: i64,
    first_send_time: i64,
    app_limited: f64,
    limited: [bool; 2],
    pub cwnd: f64,
    pub pacing_rate: f64,
    send_quantum: f64,
    // BBR
    begun: bool,
    pub state: State,
    pub round_count: i64,
    round_start: bool,
    next_round_delivered: f64,
    pub idle_restart: bool,
    drain_start_round: i64,
    pub max_bw: f64,
    max_bw_filter: [f64; 2],
    pub bw: f64,
    pub bw_shortterm: f64,
    bw_latest: f64,
    pub inflight_longterm: f64,
    pub inflight_shortterm: f64,
    inflight_latest: f64,
    pub min_rtt: f64,
    min_rtt_stamp: i64,
    probe_rtt_min_delay: f64,
    probe_rtt_min_stamp: i64,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: i64,
    probe_rtt_round_done: bool,
    pub extra_acked: f64,
    extra_acked_interval_start: i64,
    extra_acked_delivered: f64,
    /// Samples of extra_acked with their rounds.
    extra_acked_samples: Vec<(i64, f64)>,
    full_bw: f64,
    full_bw_count: i64,
    full_bw_now: bool,
    pub full_bw_reached: bool,
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    bw_probe_up_rounds: i32,
    rounds_since_probe_up: f64,
    bw_probe_wait: i64,
    cycle_stamp: i64,
    pub prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    is_loss_in_round: bool,
    loss_round_delivered: f64,
    loss_round_start: bool,
    lost_ranges: Vec<i64>,
    prior_cwnd: f64,
    recovering: bool,
    undo_state: Option<State>,
    undo: (f64, f64, f64),
    now: i64,
    drawn: (f64, i64),
}

impl Model {
    pub fn new(smss: f64) -> Model {
        Model {
            smss,
            initial_cwnd: 10.0 * smss,
            packets: Vec::new(),
            una: 0,
            rs: RateSample::default(),
            delivered: 0.0,
            lost: 0.0,
            delivered_time: 0,
            first_send_time: 0,
            // 4.1.2.4: the first write finds nothing unsent.
            app_limited: 1.0,
            limited: [false; 2],
            cwnd: 10.0 * smss,
            pacing_rate: 0.0,
            send_quantum: 2.0 * smss,
            begun: false,
            state: Startup,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0.0,
            idle_restart: false,
            drain_start_round: 0,
            max_bw: 0.0,
            max_bw_filter: [0.0; 2],
            bw: 0.0,
            bw_shortterm: INFINITY,
            bw_latest: 0.0,
            inflight_longterm: INFINITY,
            inflight_shortterm: INFINITY,
            inflight_latest: 0.0,
            min_rtt: INFINITY,
            min_rtt_stamp: 0,
            probe_rtt_min_delay: INFINITY,
            probe_rtt_min_stamp: 0,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: 0,
            probe_rtt_round_done: false,
            extra_acked: 0.0,
            extra_acked_interval_start: 0,
            extra_acked_delivered: 0.0,
            extra_acked_samples: Vec::new(),
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0.0,
            bw_probe_wait: 0,
            cycle_stamp: 0,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            is_loss_in_round: false,
            loss_round_delivered: 0.0,
            loss_round_start: false,
            lost_ranges: Vec::new(),
            prior_cwnd: 0.0,
            recovering: false,
            undo_state: None,
            undo: (INFINITY, INFINITY, INFINITY),
            now: 0,
            drawn: (0.0, 0),
        }
    }

    pub fn inflight(&self) -> f64 {
        self.packets.iter().filter(|it| !it.acked && !it.is_lost).map(|it| (it.right - it.left) as f64).sum()
    }

    // 5.2.1: with the round trip of the handshake.
    fn on_init(&mut self, srtt: i64) {
        self.begun = true;
        self.min_rtt = srtt as f64;
        self.min_rtt_stamp = self.now;
        self.probe_rtt_min_stamp = self.now;
        self.extra_acked_interval_start = self.now;
        self.pacing_rate = 2.77 * self.initial_cwnd / (srtt as f64 / 1e9);
    }

    /// OnTransmit and OnPacketSent, for segments that leave at once.
    pub fn on_packet_sent(&mut self, now: i64, srtt: i64, segments: &[(i64, i64)]) {
        self.now = now;
        if !self.begun {
            self.on_init(srtt);
        }
        // 5.4.1.
        if self.inflight() == 0.0 {
            if self.app_limited > 0.0 {
                self.idle_restart = true;
                self.extra_acked_interval_start = now;
                if self.in_probe_bw() {
                    self.set_pacing_rate_with_gain(1.0);
                } else if self.state == ProbeRtt {
                    self.check_probe_rtt_done();
                }
            }
            self.first_send_time = now;
            self.delivered_time = now;
        }
        for (left, right) in segments {
            let again = self.packets.iter().any(|it| it.left == *left);
            self.packets.retain(|it| it.left != *left);
            self.packets.push(Packet {
                left: *left,
                right: *right,
                send_time: now,
                delivered: self.delivered,
                delivered_time: self.delivered_time,
                first_send_time: self.first_send_time,
                is_app_limited: self.app_limited > 0.0,
                tx_in_flight: 0.0,
                lost: self.lost,
                again,
                acked: false,
                is_lost: false,
            });
        }
        let flight = self.inflight();
        for packet in self.packets.iter_mut().rev().take(segments.len()) {
            packet.tx_in_flight = flight;
        }
        self.packets.sort_by_key(|it| it.left);
    }

    /// UpdateRateSample of what an acknowledgment and SACK blocks cover, and the round trip of what `una` passes (4.2).
    pub fn on_delivered(&mut self, now: i64, acknowledgment: i64, blocks: &[(i64, i64)]) {
        self.now = now;
        self.rs = RateSample::default();
        let covered = |it: &Packet| {
            it.right <= acknowledgment || blocks.iter().any(|(left, right)| it.left >= *left && it.right <= *right)
        };
        if acknowledgment > self.una {
            let clean = self.packets.iter().filter(|it| it.right <= acknowledgment && !it.again && !it.acked);
            self.rs.rtt = clean.map(|it| it.send_time).max().map(|left| now - left);
            self.una = acknowledgment;
        }
        for at in 0..self.packets.len() {
            let packet = self.packets[at].clone();
            if packet.acked || !covered(&packet) {
                continue;
            }
            assert!(!packet.is_lost, "{packet:?} was lost");
            let size = (packet.right - packet.left) as f64;
            self.delivered += size;
            self.rs.newly_acked += size;
            self.delivered_time = now;
            if !self.rs.has_data || (packet.send_time, packet.right) > (self.rs.send_time, self.rs.packet_id) {
                self.rs.has_data = true;
                self.rs.prior_delivered = packet.delivered;
                self.rs.prior_time = packet.delivered_time;
                self.rs.send_time = packet.send_time;
                self.rs.packet_id = packet.right;
                self.rs.is_app_limited = packet.is_app_limited;
                self.rs.send_elapsed = packet.send_time - packet.first_send_time;
                self.rs.ack_elapsed = now - packet.delivered_time;
                self.rs.tx_in_flight = packet.tx_in_flight;
                self.rs.prior_lost = packet.lost;
                self.first_send_time = packet.send_time;
            }
            self.packets[at].acked = true;
        }
        let una = self.una;
        self.packets.retain(|it| it.right > una);
    }

    /// UpdateOnACK (5.2.3).
    pub fn on_ack(&mut self, transport: &Transport) {
        self.now = transport.now;
        self.drawn = transport.drawn;
        if self.rs.has_data {
            self.rs.lost = self.lost - self.rs.prior_lost;
            self.generate_rate_sample(transport.min_rtt);
            self.limited[1] |= transport.is_limited;
            self.update_latest_delivery_signals();
            self.update_congestion_signals();
            self.update_ack_aggregation();
            self.check_full_bw_reached();
            self.check_startup_done(transport.in_recovery);
            if self.state == Drain
                && (self.inflight() <= self.inflight_of(self.bw, 1.0) || self.round_count > self.drain_start_round + 3)
            {
                self.start_down();
            }
            self.update_probe_bw_cycle_phase();
            self.update_min_rtt();
            self.check_probe_rtt();
            if self.loss_round_start {
                self.bw_latest = self.rs.delivery_rate;
                self.inflight_latest = self.rs.delivered;
                self.lost_ranges.clear();
            }
            self.bw = self.max_bw.min(self.bw_shortterm);
            self.set_pacing_rate_with_gain(self.pacing_gain());
            self.send_quantum = (self.pacing_rate * 1e-3).min(65_536.0).max(2.0 * self.smss);
            self.set_cwnd();
            if self.round_start {
                self.limited = [self.limited[1], false];
            }
        }
        if transport.no_unsent_data && self.inflight() < self.cwnd && !self.packets.iter().any(|it| it.is_lost) {
            self.app_limited = (self.delivered + self.inflight()).max(1.0);
        }
    }

    fn generate_rate_sample(&mut self, min_rtt: i64) {
        if self.delivered > self.app_limited {
            self.app_limited = 0.0;
        }
        self.rs.delivered = self.delivered - self.rs.prior_delivered;
        let interval = self.rs.send_elapsed.max(self.rs.ack_elapsed);
        if interval >= min_rtt && interval > 0 {
            self.rs.delivery_rate = self.rs.delivered / (interval as f64 / 1e9);
        }
    }

    fn in_probe_bw(&self) -> bool {
        matches!(self.state, Down | Cruise | Refill | Up)
    }

    // 5.6.1.
    fn pacing_gain(&self) -> f64 {
        match self.state {
            Startup => 2.77,
            Drain => 0.5,
            Down => 0.9,
            Cruise | Refill | ProbeRtt => 1.0,
            Up => 1.25,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            Up => 2.25,
            ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    // 5.6.4.2.
    fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt == INFINITY { self.initial_cwnd } else { gain * bw * self.min_rtt / 1e9 }
    }

    fn quantization_budget(&self, cap: f64) -> f64 {
        let cap = cap.max(3.0 * self.send_quantum).max(4.0 * self.smss);
        cap + if self.state == Up { 2.0 * self.smss } else { 0.0 }
    }

    fn inflight_of(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    fn target_inflight(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd)
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, 0.5).max(4.0 * self.smss)
    }

    fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == INFINITY {
            return INFINITY;
        }
        let headroom = self.smss.max(0.15 * self.inflight_longterm);
        (self.inflight_longterm - headroom).max(4.0 * self.smss)
    }

    fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * 0.99;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    // 5.6.4.6 and 5.6.4.7.
    fn set_cwnd(&mut self) {
        let max_inflight = self.quantization_budget(self.bdp_multiple(self.bw, self.cwnd_gain()) + self.extra_acked);
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + self.rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || self.delivered < self.initial_cwnd {
            self.cwnd += self.rs.newly_acked;
        }
        self.cwnd = self.cwnd.max(4.0 * self.smss);
        if self.state == ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            Cruise | ProbeRtt => self.inflight_with_headroom(),
            Down | Refill | Up => self.inflight_longterm,
            Startup | Drain => INFINITY,
        };
        self.cwnd = self.cwnd.min(cap.min(self.inflight_shortterm).max(4.0 * self.smss));
    }

    // 5.5.10.3.
    fn update_latest_delivery_signals(&mut self) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(self.rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(self.rs.delivered);
        if self.rs.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    fn update_congestion_signals(&mut self) {
        // 5.5.1 and 5.5.5.
        self.round_start = self.rs.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = self.delivered;
            self.round_count += 1;
            self.rounds_since_probe_up += 1.0;
        }
        if self.rs.delivery_rate > 0.0 && (self.rs.delivery_rate >= self.max_bw || !self.rs.is_app_limited) {
            self.max_bw_filter[1] = self.max_bw_filter[1].max(self.rs.delivery_rate);
            self.max_bw = self.max_bw_filter[0].max(self.max_bw_filter[1]);
        }
        if !self.loss_round_start {
            return;
        }
        if self.is_loss_in_round && !matches!(self.state, Startup | Refill | Up) {
            if self.bw_shortterm == INFINITY {
                self.bw_shortterm = self.max_bw;
            }
            if self.inflight_shortterm == INFINITY {
                self.inflight_shortterm = self.cwnd;
            }
            self.bw_shortterm = self.bw_latest.max(0.7 * self.bw_shortterm);
            self.inflight_shortterm = self.inflight_latest.max(0.7 * self.inflight_shortterm);
        }
        self.is_loss_in_round = false;
    }

    // 5.5.9.
    fn update_ack_aggregation(&mut self) {
        let mut expected = self.bw * (self.now - self.extra_acked_interval_start) as f64 / 1e9;
        // Where data arrives at exactly the rate, only rounding would decide.
        if self.extra_acked_delivered <= expected + 1.0 {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = self.now;
            expected = 0.0;
        }
        self.extra_acked_delivered += self.rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        let window = if self.full_bw_reached { 10 } else { 1 };
        let rounds = self.round_count;
        self.extra_acked_samples.push((rounds, extra));
        self.extra_acked_samples.retain(|(round, _)| rounds - round < window);
        self.extra_acked = self.extra_acked_samples.iter().map(|(_, extra)| *extra).fold(0.0, f64::max);
    }

    // 5.3.1.
    fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    fn check_full_bw_reached(&mut self) {
        if self.full_bw_now || !self.round_start || self.rs.is_app_limited {
            return;
        }
        if self.rs.delivery_rate >= self.full_bw * 1.25 {
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        self.full_bw_reached |= self.full_bw_now;
    }

    fn is_inflight_too_high(&self) -> bool {
        self.rs.lost > self.rs.tx_in_flight * 0.02
    }

    fn check_startup_done(&mut self, in_recovery: bool) {
        let high_loss =
            in_recovery && self.loss_round_start && self.lost_ranges.len() >= 6 && self.is_inflight_too_high();
        if self.state == Startup && high_loss {
            self.undo_state = Some(Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest);
        }
        if self.state == Startup && self.full_bw_reached {
            self.state = Drain;
            self.drain_start_round = self.round_count;
        }
    }

    // 5.3.3.9.
    fn start_down(&mut self) {
        (self.is_loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0.0, 0.0);
        self.probe_up_acked_per_inc = INFINITY;
        (self.rounds_since_probe_up, self.bw_probe_wait) = self.drawn;
        self.cycle_stamp = self.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.next_round_delivered = self.delivered;
        self.state = Down;
    }

    fn start_refill(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (INFINITY, INFINITY);
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.next_round_delivered = self.delivered;
        self.state = Refill;
    }

    fn start_up(&mut self) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.next_round_delivered = self.delivered;
        self.reset_full_bw();
        self.full_bw = self.rs.delivery_rate;
        self.state = Up;
        self.raise_inflight_longterm_slope();
    }

    fn is_time_to_probe_bw(&mut self) -> bool {
        let rounds = (self.target_inflight() / self.smss).floor().min(63.0);
        let time = self.now > self.cycle_stamp + self.bw_probe_wait || self.rounds_since_probe_up >= rounds;
        if time {
            self.start_refill();
        }
        time
    }

    fn is_time_to_cruise(&self) -> bool {
        self.inflight() <= self.inflight_with_headroom() && self.inflight() <= self.inflight_of(self.max_bw, 1.0)
    }

    fn is_cwnd_limited(&self) -> bool {
        self.limited[0] || self.limited[1]
    }

    fn is_time_to_go_down(&mut self) -> bool {
        if self.prev_probe_too_high && self.inflight() >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
            return false;
        }
        self.full_bw_now
    }

    fn update_probe_bw_cycle_phase(&mut self) {
        if !self.full_bw_reached || self.adapt_long_term_model() || !self.in_probe_bw() {
            return;
        }
        match self.state {
            Down => {
                if !self.is_time_to_probe_bw() && self.is_time_to_cruise() {
                    self.state = Cruise;
                }
            }
            Cruise => _ = self.is_time_to_probe_bw(),
            Refill => {
                if self.round_start {
                    self.is_bw_probe_sample = true;
                    self.start_up();
                }
            }
            _ => {
                if self.is_time_to_go_down() {
                    self.prev_probe_too_high = false;
                    self.start_down();
                }
            }
        }
    }

    fn raise_inflight_longterm_slope(&mut self) {
        let growth = 2.0_f64.powi(self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(self.smss);
    }

    fn adapt_long_term_model(&mut self) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.in_probe_bw() && !self.rs.is_app_limited && self.max_bw_filter[1] > 0.0 {
                self.max_bw_filter = [self.max_bw_filter[1], 0.0];
                self.max_bw = self.max_bw_filter[0];
            }
            if self.in_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high() && self.inflight_longterm != INFINITY {
            self.inflight_longterm = self.inflight_longterm.max(self.rs.tx_in_flight);
            if self.state == Up && self.is_cwnd_limited() && self.cwnd >= self.inflight_longterm {
                self.bw_probe_up_acked += self.rs.newly_acked;
                let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
                self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
                self.inflight_longterm += delta * self.smss;
                if self.round_start {
                    self.raise_inflight_longterm_slope();
                }
            }
        }
        false
    }

    // 5.3.4.3.
    fn update_min_rtt(&mut self) {
        self.probe_rtt_expired = self.now > self.probe_rtt_min_stamp + 5 * SECOND;
        if let Some(rtt) = self.rs.rtt.map(|rtt| rtt as f64)
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = self.now;
        }
        if self.probe_rtt_min_delay < self.min_rtt || self.now > self.min_rtt_stamp + 10 * SECOND {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    fn check_probe_rtt(&mut self) {
        if self.state != ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done_stamp = 0;
            self.ack_phase = AckPhase::ProbeStopping;
            self.next_round_delivered = self.delivered;
        }
        if self.state == ProbeRtt {
            self.app_limited = (self.delivered + self.inflight()).max(1.0);
            if self.probe_rtt_done_stamp == 0 && self.inflight() <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = self.now + SECOND / 5;
                self.probe_rtt_round_done = false;
                self.next_round_delivered = self.delivered;
            } else if self.probe_rtt_done_stamp != 0 {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done();
                }
            }
        }
        if self.rs.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self) {
        if self.probe_rtt_done_stamp != 0 && self.now > self.probe_rtt_done_stamp {
            self.probe_rtt_min_stamp = self.now;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            (self.bw_shortterm, self.inflight_shortterm) = (INFINITY, INFINITY);
            if self.full_bw_reached {
                self.start_down();
                self.state = Cruise;
            } else {
                self.state = Startup;
            }
        }
    }

    // 5.6.4.4.
    fn save_cwnd(&mut self) {
        let keeps = self.recovering || self.state == ProbeRtt;
        self.prior_cwnd = if keeps { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo_state = None;
        self.undo = (self.bw_shortterm, self.inflight_shortterm, self.inflight_longterm);
    }

    pub fn on_enter_recovery(&mut self) {
        self.save_state_upon_loss();
        self.recovering = true;
    }

    pub fn on_exit_recovery(&mut self) {
        self.recovering = false;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    pub fn on_timeout(&mut self) {
        self.save_cwnd();
        self.cwnd = self.inflight() + self.smss;
    }

    /// HandleLostPacket (5.5.10.2) for segments that left at once and lie side by side, by their places among the packets.
    pub fn handle_lost_packet(&mut self, now: i64, drawn: (f64, i64), places: &[usize]) {
        (self.now, self.drawn) = (now, drawn);
        let packet = self.packets[places[0]].clone();
        let size: f64 = places.iter().map(|at| (self.packets[*at].right - self.packets[*at].left) as f64).sum();
        for at in places {
            self.packets[*at].is_lost = true;
        }
        self.lost += size;
        if self.lost_ranges.last() == Some(&packet.left) {
            self.lost_ranges.pop();
        }
        self.lost_ranges.push(self.packets[places[places.len() - 1]].right);
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_state_upon_loss();
        }
        self.is_loss_in_round = true;
        if !self.is_bw_probe_sample {
            return;
        }
        let lost = self.lost - packet.lost;
        if lost <= packet.tx_in_flight * 0.02 {
            return;
        }
        let (inflight_prev, lost_prev) = (packet.tx_in_flight - size, lost - size);
        let at_loss = inflight_prev + (0.02 * inflight_prev - lost_prev) / (1.0 - 0.02);
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !packet.is_app_limited {
            self.inflight_longterm = at_loss.max(self.target_inflight() * 0.7);
        }
        if self.state == Up {
            self.undo_state = Some(Up);
            self.start_down();
        }
    }
}
