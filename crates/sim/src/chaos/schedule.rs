//! Random faults for a network.

use super::{Fault, FaultKind, Impairment};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::time::Duration;
use weftwire_core::{Time, builtin_formats};
use weftwire_network::Network;
use weftwire_network::model::{FieldFault, LinkIndex, NodeIndex, NodeKind, TrafficKind, Transport};

/// Most faults of one schedule.
const MOST_FAULTS: u64 = 8;
/// The shortest fault, in nanoseconds.
const SHORTEST: Duration = Duration::from_millis(1);
/// Times are whole multiples of this many nanoseconds.
const GRAIN: u64 = 1_000;

/// Draws 1 to 8 faults: they begin in the first 70 % of the run and last from 1 ms to a tenth of it, short ones as often
/// as long ones. Only links and nodes of this network are hit, and only fields that its traffic has. No faults at all if
/// there is nothing to hit.
///
/// # Panics
/// Never.
pub fn schedule(network: &Network, seed: u64) -> Vec<Fault> {
    let mut dice = Dice(Pcg64::seed_from_u64(seed));
    let targets = Targets::of(network);
    let kinds = targets.kinds();
    if kinds.is_empty() {
        return Vec::new();
    }
    let count = dice.between(1, MOST_FAULTS);
    let mut faults: Vec<Fault> = (0..count).map(|_| targets.draw(network, &kinds, &mut dice)).collect();
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Random numbers without floating-point functions, which differ between machines.
struct Dice(Pcg64);

impl Dice {
    /// Uniform, both ends included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        let range = u128::from(most.saturating_sub(least)) + 1;
        least + ((u128::from(self.0.next_u64()) * range) >> 64) as u64
    }

    /// About as often in each octave between both ends.
    fn log_between(&mut self, least: u64, most: u64) -> u64 {
        let least = least.max(1);
        let most = most.max(least);
        let low = least << self.between(0, u64::from((most / least).ilog2()));
        self.between(low, most.min(low.saturating_mul(2)))
    }

    /// A share from 1 % to 1, small ones as often as great ones, in thousandths.
    fn share(&mut self) -> f64 {
        self.log_between(10, 1000) as f64 / 1000.0
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.between(0, list.len() as u64 - 1) as usize]
    }

    /// A duration in whole grains.
    fn duration(&mut self, least: Duration, most: Duration) -> Duration {
        let drawn = self.log_between(least.as_nanos() as u64, most.as_nanos() as u64);
        Duration::from_nanos((drawn / GRAIN * GRAIN).max(GRAIN))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Down,
    Blackhole,
    Field,
    Restart,
    Clock,
    Impair,
}

/// What can be hit.
struct Targets {
    links: Vec<LinkIndex>,
    /// Nodes with a memory that a restart takes away.
    restartable: Vec<NodeIndex>,
    functions: Vec<NodeIndex>,
    /// Names and widths of fields.
    fields: Vec<(String, u16)>,
}

impl Targets {
    fn of(network: &Network) -> Targets {
        let nodes = |wanted: fn(&NodeKind) -> bool| -> Vec<NodeIndex> {
            network.nodes().filter(|(_, node)| wanted(&node.kind)).map(|(index, _)| index).collect()
        };
        Targets {
            links: network.links().map(|(index, _)| index).collect(),
            restartable: nodes(|kind| matches!(kind, NodeKind::Host { .. } | NodeKind::Switch | NodeKind::Function(_))),
            functions: nodes(|kind| matches!(kind, NodeKind::Function(_))),
            fields: fields(network),
        }
    }

    /// The kinds that have something to hit, as often as they shall be drawn.
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        if !self.links.is_empty() {
            kinds.extend([Kind::Down; 3]);
            kinds.extend([Kind::Blackhole; 2]);
            kinds.extend([Kind::Impair; 8]);
            if !self.fields.is_empty() {
                kinds.extend([Kind::Field; 3]);
            }
        }
        if !self.restartable.is_empty() {
            kinds.push(Kind::Restart);
        }
        if !self.functions.is_empty() {
            kinds.extend([Kind::Clock; 2]);
        }
        kinds
    }

    fn draw(&self, network: &Network, kinds: &[Kind], dice: &mut Dice) -> Fault {
        let most = (network.duration / 10).max(Duration::from_nanos(1));
        let at = dice.between(0, (network.duration / 10 * 7).as_nanos() as u64) / GRAIN * GRAIN;
        let mut lasts = dice.duration(SHORTEST.min(most), most);
        let kind = *dice.pick(kinds);
        let what = match kind {
            Kind::Down => FaultKind::LinkDown { link: *dice.pick(&self.links) },
            Kind::Blackhole => {
                FaultKind::Blackhole { link: *dice.pick(&self.links), direction: dice.between(0, 1) as usize }
            }
            Kind::Field => FaultKind::CorruptField {
                link: *dice.pick(&self.links),
                direction: dice.between(0, 1) as usize,
                field: self.field(dice),
            },
            Kind::Restart => {
                lasts = Duration::ZERO;
                FaultKind::Restart { node: *dice.pick(&self.restartable) }
            }
            Kind::Clock => self.clock(dice),
            Kind::Impair => FaultKind::Impair {
                link: *dice.pick(&self.links),
                direction: dice.between(0, 1) as usize,
                impairment: impairment(dice, most),
            },
        };
        Fault { at: Time::ZERO.plus(Duration::from_nanos(at)), lasts, what }
    }

    /// One to three of the field's last eight bits are inverted. They are in one word of the Internet checksum, so that the
    /// checksum finds every such change; a change in two words may cancel out, and no transport could help it.
    fn field(&self, dice: &mut Dice) -> FieldFault {
        let (field, width) = dice.pick(&self.fields);
        let mut mask = 0;
        for _ in 0..dice.between(1, 3) {
            mask |= 1 << dice.between(0, u64::from(*width).min(8) - 1);
        }
        let share = if dice.between(0, 1) == 0 { 1.0 } else { dice.share() };
        FieldFault { field: field.clone(), mask, share_millionths: (share * 1e6).round() as u32 }
    }

    fn clock(&self, dice: &mut Dice) -> FaultKind {
        let drift = dice.log_between(10, 100_000) as i64;
        let drift_ppm = if dice.between(0, 1) == 0 { drift } else { -drift };
        let leap =
            if dice.between(0, 2) == 0 { dice.duration(SHORTEST, Duration::from_secs(10)) } else { Duration::ZERO };
        FaultKind::Clock { node: *dice.pick(&self.functions), drift_ppm, leap }
    }
}

fn impairment(dice: &mut Dice, longest: Duration) -> Impairment {
    match dice.between(0, 4) {
        0 => Impairment::Loss(dice.share()),
        1 => {
            let least = Duration::from_micros(100);
            Impairment::Delay(dice.duration(least, longest.clamp(least, Duration::from_secs(1))))
        }
        2 => {
            let share = dice.share();
            Impairment::Reorder(share, dice.duration(Duration::from_micros(10), Duration::from_millis(100)))
        }
        3 => Impairment::Duplicate(dice.share()),
        _ => Impairment::Corrupt(dice.share()),
    }
}

/// The fields of the headers that the network's traffic has.
fn fields(network: &Network) -> Vec<(String, u16)> {
    let carried = |format: &str| {
        network.traffic.iter().any(|traffic| match (&traffic.kind, format) {
            // Whatever is in the capture; a field that is not there is left alone.
            (TrafficKind::Capture { .. }, "ipv4" | "ipv6" | "tcp" | "udp") => true,
            (TrafficKind::Capture { .. }, _) => false,
            (_, "ipv4") => !traffic.ipv6,
            (_, "ipv6") => traffic.ipv6,
            (_, "tcp") => traffic.transport == Transport::Tcp,
            (_, "udp") => traffic.transport == Transport::Udp,
            _ => false,
        })
    };
    let formats = builtin_formats().iter().filter(|format| carried(&format.name));
    formats
        .flat_map(|format| format.fields.iter().map(|field| (format!("{}.{}", format.name, field.name), field.width)))
        .collect()
}
