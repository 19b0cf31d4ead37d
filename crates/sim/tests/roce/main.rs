//! RoCEv2 (`examples/transports/roce`): bytes over whatever a network does, packets as the specification writes them, and DCQCN beside the paper.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

mod ends;

use ends::{Ends, Fate, MICROSECOND, MILLISECOND, Wire};
use proptest::prelude::*;

/// Retries soon, as paths here are short.
const SOON: (&str, i64) = ("timeout", 200 * MICROSECOND);
/// Syndromes of acknowledgments (9.7.5.2.1): with all credits, a sequence error, an invalid request.
const ACK: u8 = 0x1f;
const SEQUENCE_ERROR: u8 = 0x60;
const INVALID_REQUEST: u8 = 0x61;

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

/// As it was sent.
fn clean() -> Fate {
    Box::new(|_, _| vec![0])
}

fn dice(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Parts of a thousand that are lost, come twice, come late, or come with another bit.
fn faulty(lost: u64, doubled: u64, late: u64, garbled: u64, mut seed: u64) -> Fate {
    Box::new(move |_, frame| {
        if dice(&mut seed) % 1_000 < lost {
            return Vec::new();
        }
        if dice(&mut seed) % 1_000 < garbled {
            let bit = 14 * 8 + dice(&mut seed) as usize % ((frame.len() - 14) * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        let copies = 1 + usize::from(dice(&mut seed) % 1_000 < doubled);
        (0..copies).map(|_| if dice(&mut seed) % 1_000 < late { 30 * MICROSECOND } else { 0 }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Whatever is lost, doubled, late or garbled: the bytes arrive, in order and once, and both ends know that it is over.
    #[test]
    fn all_bytes_arrive(
        length in 0..120_000_usize, lost in 0..100_u64, doubled in 0..100_u64, late in 0..100_u64, garbled in 0..30_u64,
        mtu in 8..=12_u32, message in 1..40_000_i64, first in prop_oneof![Just(0), 0xff_ff00..0x100_0000_i64], seed: u64,
    ) {
        // With so much loss the same packet may be lost more than seven times.
        let registers = [SOON, ("mtu", 1 << mtu), ("message", message), ("first", first), ("retries", 60), ("outstanding", 128)];
        let mut ends = Ends::new(&registers, data(length), true, faulty(lost, doubled, late, garbled, seed));
        ends.run();
        prop_assert!(ends.received == data(length), "{} of {length} bytes", ends.received.len());
        prop_assert_eq!(&ends.notices[..], ["finished", "finished"]);
    }
}

/// 9.2, 9.5 and 9.7.5: opcodes, padding, numbers, and what is acknowledged.
#[test]
fn packets_are_those_of_the_specification() {
    let registers = [("first", 0xff_fffe), ("message", 3_000)];
    let mut ends = Ends::new(&registers, data(3_000 + 1_022), true, clean());
    ends.run();
    let read = |end: usize| ends.sent[end].iter().map(|(_, frame)| Wire::read(frame)).collect::<Vec<_>>();
    let (requests, replies) = (read(0), read(1));
    let bytes = data(4_022);
    let pair = requests[0].pair;
    assert!((2..1 << 24).contains(&pair));
    let request = |opcode, psn, pads: u8, asks, part: std::ops::Range<usize>| {
        let rest = [&bytes[part], &[0; 3][..pads.into()]].concat();
        Wire { opcode, pads, becn: false, pair, asks, psn, rest }
    };
    let expected = [
        request(0, 0xff_fffe, 0, false, 0..1_024),
        request(1, 0xff_ffff, 0, false, 1_024..2_048),
        // Every sixteenth packet asks, as does each that ends a message.
        request(2, 0, 0, true, 2_048..3_000),
        request(4, 1, 2, true, 3_000..4_022),
        Wire { opcode: 5, rest: vec![0; 4], ..request(4, 2, 0, true, 0..0) },
    ];
    assert_eq!(requests.len(), expected.len());
    for (request, expected) in requests.iter().zip(&expected) {
        assert!(request == expected, "{}, packet {}", request.opcode, request.psn);
    }
    assert_eq!(replies, [0, 1, 2].map(|psn| Wire::reply(pair, psn, ACK, psn + 1)));
    for (_, frame) in &ends.sent[0] {
        // Class 3, ECN-capable, and no UDP checksum.
        assert_eq!((frame[15], &frame[34..36], &frame[40..42]), (24 << 2 | 2, &[0x9c, 0x40][..], &[0, 0][..]));
    }
}

/// What was sent behind a packet that is lost is sent again, once; the responder says so once (9.7.5.1.2).
#[test]
fn a_lost_packet_is_followed_by_all_behind_it() {
    let mut left = 0;
    let lost: Fate = Box::new(move |end, _| {
        left += usize::from(end == 0);
        if end == 0 && left == 6 { Vec::new() } else { vec![0] }
    });
    let mut ends = Ends::new(&[], data(40_960), true, lost);
    ends.run();
    assert_eq!(ends.received, data(40_960));
    let replies: Vec<Wire> = ends.sent[1].iter().map(|(_, frame)| Wire::read(frame)).collect();
    let missing = Wire::reply(replies[0].pair, 5, SEQUENCE_ERROR, 0);
    assert_eq!(replies.iter().filter(|reply| **reply == missing).count(), 1);
    let numbers: Vec<u32> = ends.sent[0].iter().map(|(_, frame)| Wire::read(frame).psn).collect();
    let back = numbers.iter().rposition(|psn| *psn == 5).expect("it is sent again");
    assert!((10..25).contains(&back), "{numbers:?}");
    assert_eq!(numbers, (0..back as u32).chain(5..41).collect::<Vec<_>>());
    // All within the local ACK timeout of 67 ms.
    assert!(ends.now < MILLISECOND, "{}", ends.now);
}

/// Nobody there: seven times more, each after twice as long, and the application is told.
#[test]
fn a_requester_gives_up() {
    let mut ends = Ends::new(&[], data(100), true, Box::new(|_, _| Vec::new()));
    ends.run();
    assert_eq!(ends.notices, ["failed"]);
    let times: Vec<i64> = ends.sent[0].iter().map(|(at, _)| *at).collect();
    // The data and, as all is written at once, the end behind it.
    let first: Vec<i64> = times.chunks(2).map(|pair| pair[0]).collect();
    assert_eq!(first.len(), 8);
    for (turn, pair) in first.windows(2).enumerate() {
        let expected = (4_096 << 14) << turn;
        assert!((pair[1] - pair[0] - expected).abs() < MILLISECOND, "{first:?}");
    }
}

/// A responder without room for another message says so, and the requester leaves it alone for so long (9.7.5.2.8).
#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    let bytes = data(17_000_000);
    let mut ends = Ends::new(&[("message", 1_048_576)], bytes.clone(), true, clean());
    ends.reads = false;
    ends.run_until(40 * MILLISECOND);
    let held = ends.received.len();
    assert!((15_000_000..=16_777_216).contains(&held), "{held}");
    let count =
        |ends: &Ends, kind: u8| ends.sent[1].iter().filter(|(_, frame)| Wire::read(frame).rest[0] >> 5 == kind).count();
    let asked = count(&ends, 1);
    // From about 13.5 ms on, every 0.64 ms and a round trip.
    assert!((30..=45).contains(&asked), "{asked}");
    assert_eq!(count(&ends, 3), 0, "nothing was lost");
    ends.reads = true;
    ends.read();
    ends.run();
    assert!(ends.received == bytes);
    assert_eq!(ends.notices, ["finished", "finished"]);
}

/// What no requester sends is refused or ignored, and counted where it is dropped.
#[test]
fn hostile_packets_do_no_harm() {
    let mut ends = Ends::new(&[], data(5_000), false, clean());
    ends.run_until(MILLISECOND);
    let pair = Wire::read(&ends.sent[0][0].1).pair;
    let asks = Wire { opcode: 4, pads: 0, becn: false, pair, asks: true, psn: 5, rest: vec![7; 8] };
    let answers = |ends: &mut Ends, wire: &Wire| {
        let before = ends.sent[1].len();
        ends.arrives(1, &wire.frame(false));
        ends.sent[1][before..].iter().map(|(_, frame)| Wire::read(frame)).collect::<Vec<_>>()
    };
    // To another queue pair; a READ request, a datagram, an acknowledgment.
    for strange in [
        Wire { pair: pair ^ 1, ..asks.clone() },
        Wire { opcode: 0x0c, ..asks.clone() },
        Wire { opcode: 0x64, ..asks.clone() },
        Wire { opcode: 0x11, ..asks.clone() },
    ] {
        assert_eq!(answers(&mut ends, &strange), [], "{strange:?}");
    }
    // Twice; long ago and far ahead.
    assert_eq!(answers(&mut ends, &Wire { psn: 2, ..asks.clone() }), [Wire::reply(pair, 4, ACK, 1)]);
    assert_eq!(answers(&mut ends, &Wire { psn: 0x80_0100, ..asks.clone() }), [Wire::reply(pair, 4, ACK, 1)]);
    assert_eq!(answers(&mut ends, &Wire { psn: 900, ..asks.clone() }), [Wire::reply(pair, 5, SEQUENCE_ERROR, 1)]);
    // Acknowledgments of what was never sent, or by nobody; one that asks for what was acknowledged.
    let requests = ends.sent[0].len();
    for reply in [
        Wire::reply(pair, 5, ACK, 2),
        Wire::reply(pair ^ 1, 4, ACK, 2),
        Wire::reply(pair, 0x80_0004, ACK, 2),
        Wire::reply(pair, 3, SEQUENCE_ERROR, 0),
        Wire::notification(pair ^ 1),
    ] {
        ends.arrives(0, &reply.frame(true));
    }
    ends.run_until(2 * MILLISECOND);
    assert_eq!((ends.sent[0].len(), ends.register("una")), (requests, 5));
    // Cut, and garbled.
    let whole = asks.frame(false);
    let mut garbled = whole.clone();
    garbled[60] ^= 1;
    ends.arrives(1, &garbled);
    ends.arrives(1, &whole[..58]);
    assert_eq!((ends.dropped(1, "bad_invariant_crc"), ends.dropped(1, "truncated")), (1, 1));
    assert_eq!(ends.received, data(5_000));
    // In turn, but within no message, or of a wrong length: the connection is over.
    for (opcode, length) in [(1, 1_024), (2, 8), (0, 8), (4, 1_028)] {
        let mut ends = Ends::new(&[], data(5_000), false, clean());
        ends.run_until(MILLISECOND);
        let pair = Wire::read(&ends.sent[0][0].1).pair;
        let wrong = Wire { opcode, pair, rest: vec![7; length], ..asks.clone() };
        assert_eq!(answers(&mut ends, &wrong), [Wire::reply(pair, 5, INVALID_REQUEST, 1)], "{opcode}, {length} bytes");
        assert_eq!(ends.received, data(5_000));
    }
}

/// A packet that was marked is told of, at most once in 50 us (DCQCN, 3.1).
#[test]
fn marks_are_told_of() {
    let marks: Fate = Box::new(|end, frame| {
        if end == 0 {
            frame[15] |= 3;
            frame[24..26].fill(0);
            let sum = weftwire_core::checksum::checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        vec![0]
    });
    let mut ends = Ends::new(&[("control", 1), ("fixed.rate", 1_000_000_000)], data(500_000), true, marks);
    ends.run();
    let notifications = ends.sent[1].iter().filter(|(_, frame)| frame[42] == 0x81);
    let told: Vec<i64> = notifications.clone().map(|(at, _)| *at).collect();
    assert!(
        told.windows(2).all(|pair| (50 * MICROSECOND..70 * MICROSECOND).contains(&(pair[1] - pair[0]))),
        "{told:?}"
    );
    assert!(told.len() > 60, "{}", told.len());
    let pair = Wire::read(&ends.sent[0][0].1).pair;
    notifications.for_each(|(_, frame)| assert_eq!(Wire::read(frame), Wire::notification(pair)));
}

/// DCQCN's reaction point, from section 3.1 and Figure 7 of the paper, in floating point; times in nanoseconds.
struct ReactionPoint {
    current: f64,
    target: f64,
    alpha: f64,
    /// Rounds by timer and by bytes since the cut, and the bytes of this round.
    rounds: [u32; 2],
    bytes: f64,
    /// Bytes of a round.
    counter: f64,
    /// When alpha falls and when the timer raises the rate, if nothing is told before.
    falls: Option<i64>,
    raises: Option<i64>,
    /// Rounds of fast recovery, additive increase and hyper increase.
    phases: [usize; 3],
}

const LINE: f64 = 10e9;
const FAST_ROUNDS: u32 = 5;

impl ReactionPoint {
    fn new(counter: f64) -> ReactionPoint {
        ReactionPoint {
            current: LINE,
            target: LINE,
            alpha: 1.0,
            rounds: [0; 2],
            bytes: 0.0,
            counter,
            falls: None,
            raises: None,
            phases: [0; 3],
        }
    }

    /// Equation 1.
    fn notified(&mut self, now: i64) {
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(100e6);
        self.alpha = (1.0 - 1.0 / 256.0) * self.alpha + 1.0 / 256.0;
        self.rounds = [0; 2];
        self.bytes = 0.0;
        self.falls = Some(now + 55_000);
        self.raises = Some(now + 55_000);
    }

    /// Figure 7, and equations 3 and 4.
    fn increase(&mut self, by: usize) {
        let [timer, bytes] = self.rounds;
        let phase = if timer.min(bytes) > FAST_ROUNDS {
            self.target += 400e6;
            2
        } else if timer.max(bytes) >= FAST_ROUNDS {
            self.target += 40e6;
            1
        } else {
            0
        };
        self.phases[phase] += 1;
        self.target = self.target.min(LINE);
        self.current = (self.target + self.current) / 2.0;
        self.rounds[by] += 1;
    }

    fn sent(&mut self, bytes: f64) {
        self.bytes += bytes;
        if self.bytes >= self.counter {
            self.bytes -= self.counter;
            self.increase(1);
        }
    }

    /// Equation 2, and the timer of the rate.
    fn passes(&mut self, now: i64) {
        while let Some(falls) = self.falls.filter(|at| *at <= now) {
            self.alpha *= 1.0 - 1.0 / 256.0;
            self.falls = Some(falls + 55_000);
        }
        while let Some(raises) = self.raises.filter(|at| *at <= now) {
            self.increase(0);
            self.raises = Some(raises + 55_000);
        }
    }
}

/// The rate and alpha are those of the paper at each event, whenever notifications come.
#[test]
fn dcqcn_is_that_of_the_paper() {
    for (counter, gap, seed) in [(10_000_000, 600, 1), (100_000, 800, 2), (60_000, 2_000, 3)] {
        let mut ends = Ends::new(&[("dcqcn.enough", counter)], data(40_000_000), false, clean());
        let mut model = ReactionPoint::new(counter as f64);
        let pair = Wire::read(&ends.sent[0][0].1).pair;
        let (mut seed, mut seen, mut compared, mut cut) = (seed, 0_usize, 0, 0);
        let mut told = 100 * MICROSECOND;
        while ends.now < 20 * MILLISECOND {
            let next = ends.next().expect("it goes on");
            if told <= next {
                ends.now = told;
                model.passes(told);
                model.notified(told);
                ends.arrives(0, &Wire::notification(pair).frame(true));
                told += (50 + (dice(&mut seed) % gap) as i64) * MICROSECOND + 1;
                cut += 1;
            } else {
                ends.step();
                model.passes(ends.now);
            }
            ends.sent[0][seen..].iter().for_each(|(_, frame)| model.sent(frame.len() as f64));
            seen = ends.sent[0].len();
            let (ours, alpha) =
                (ends.register("pacing") as f64, ends.register("dcqcn.alpha") as f64 / f64::from(1 << 30));
            assert!(
                (ours / model.current - 1.0).abs() < 1e-4,
                "{ours}, not {} bit/s at {} ns",
                model.current,
                ends.now
            );
            assert!((alpha / model.alpha - 1.0).abs() < 1e-4, "{alpha}, not {} at {} ns", model.alpha, ends.now);
            compared += 1;
        }
        println!("{compared} compared, cut {cut} times; rounds {:?}", model.phases);
        assert!(compared > 5_000 && cut > 10 && model.phases[0] > 50 && model.phases[1] > 10);
        assert!(counter > 100_000 || model.phases[2] > 0, "{:?}", model.phases);
    }
}
