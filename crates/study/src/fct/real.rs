//! Runs in real time: the kernel's TCP beside the one in XL, many cells at once through one relay.
//!
//! Everything here is a function of its arguments: [`description`] is the network that `weft up` can make, and [`Seen`] what crossed
//! the port in front of a bottleneck.

use super::scenario::starts;
use super::{Cell, FLOWS, Pair, Run, SEGMENT, bound};
use std::fmt::Write as _;
use weftwire_network::link::Counts;

/// Port numbers of the receiver, counted up from here by flow.
pub const PORT: u16 = 5_001;
/// Processes of machines start one after another; each has so long before the first flow begins.
const PROCESS_NS: u64 = 100_000_000;
/// So long at least.
const LEAD_NS: u64 = 1_000_000_000;

/// One run among those that are made at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The cell.
    pub cell: Cell,
    /// Who sends.
    pub pair: Pair,
    /// Which of the runs of the cell: it says when flows begin.
    pub repetition: u32,
}

impl Slot {
    /// How long it is watched: far less than in virtual time, since somebody waits for it.
    pub fn limit_ns(&self) -> u64 {
        4 * bound(&self.cell, &[0; FLOWS]) + 20_000_000_000
    }

    /// How late flows may begin: a twentieth of a round trip, and 1 ms at least.
    pub fn sources_allowed_ns(&self) -> i64 {
        (self.cell.rtt_ns / 20).max(1_000_000) as i64
    }
}

/// The name of the link that is the bottleneck of a slot.
pub fn bottleneck(slot: usize) -> String {
    format!("s{slot}")
}

/// The node whose capture has what crossed the port in front of a slot's bottleneck.
pub fn captured(slot: usize) -> String {
    format!("s{slot}w")
}

/// From the start of a run of these slots to the first flow.
pub fn lead_ns(slots: &[Slot]) -> u64 {
    let machines = slots.iter().filter(|slot| slot.pair.kernel().is_none()).count() * FLOWS;
    LEAD_NS + machines as u64 * PROCESS_NS
}

/// A network with a bottleneck of its own for each slot: six senders, a router with the queue, one receiver, whose TCP is the kernel's.
/// `image` is the file of the TCP in XL, `seed` where starting times come from.
pub fn description(name: &str, slots: &[Slot], seed: u64, image: &str) -> String {
    let lead = lead_ns(slots);
    let duration = lead + slots.iter().map(Slot::limit_ns).max().unwrap_or(0);
    let recorded: Vec<String> = (0..slots.len()).map(|slot| format!("\"s{slot}w:{}\"", FLOWS + 1)).collect();
    let mut text = format!(
        "name = \"{name}\"\nduration = \"{duration}ns\"\nsample_interval = \"{duration}ns\"\nrecord = [{}]\n",
        recorded.join(", ")
    );
    for (number, slot) in slots.iter().enumerate() {
        let Slot { cell, pair, repetition } = slot;
        let Cell { rate, rtt_ns, queue, length, initial_window } = cell;
        let receiver = format!("10.254.{}.{}", number / 250, number % 250 + 1);
        for flow in 1..=FLOWS {
            let _ = write!(text, "\n[nodes.s{number}l{flow}]\n");
            let _ = match pair.kernel() {
                None => writeln!(
                    text,
                    "kind = \"function\"\nimage = \"{image}\"\nparameters = {{ initial_window = {initial_window}, control = \"{}\", \
                     recovery = \"{}\" }}",
                    pair.control_of_machine(),
                    pair.recovery()
                ),
                Some(kernel) => {
                    let least = kernel.least_timeout(*rtt_ns).map_or(String::new(), |time| format!(" rto_min {time}"));
                    writeln!(
                        text,
                        "commands = [{{ run = [\"sh\", \"-c\", \"ip route change $(ip -4 route show {receiver}) initcwnd \
                         {initial_window}{least}\"] }}]"
                    )
                }
            };
        }
        let _ =
            write!(text, "\n[nodes.s{number}w]\nkind = \"router\"\n\n[nodes.s{number}r]\nipv4 = \"{receiver}\"\n\n");
        for flow in 1..=FLOWS {
            let _ = write!(
                text,
                "[[links]]\nbetween = [\"s{number}l{flow}\", \"s{number}w:{flow}\"]\nqueue = \"10000 packets\"\n\n"
            );
        }
        let _ = write!(
            text,
            "[[links]]\nname = \"{}\"\nbetween = [\"s{number}w:{}\", \"s{number}r\"]\nrate = \"{rate}bit/s\"\ndelay = \"{}ns\"\n\
             queue = \"{queue} packets\"\nbackward = {{ rate = \"1Gbit/s\", queue = \"10000 packets\" }}\n",
            bottleneck(number),
            FLOWS + 1,
            rtt_ns / 2
        );
        for (flow, start) in starts(cell, seed, *repetition).iter().enumerate() {
            let control = match pair.kernel() {
                Some(kernel) => format!("congestion_control = \"{}\"\n", kernel.control()),
                None => String::new(),
            };
            let _ = write!(
                text,
                "\n[[traffic]]\nname = \"s{number}f{}\"\nkind = \"bulk\"\nfrom = \"s{number}l{}\"\nto = \"s{number}r\"\nport = {}\n\
                 bytes = \"{}B\"\nstart = \"{}ns\"\n{control}",
                flow + 1,
                flow + 1,
                usize::from(PORT) + flow,
                u64::from(*length) * SEGMENT,
                lead + start,
            );
        }
    }
    text
}

/// A segment at the port in front of a bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When, after the run's start.
    pub at_ns: i64,
    /// Of which flow, from 0.
    pub flow: usize,
    /// What it says.
    pub what: What,
}

/// What a segment says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Data of the sender.
    Data {
        /// Sequence number of its first byte.
        sequence: u32,
        /// Its bytes, not 0.
        length: u32,
    },
    /// Of the receiver: everything in front of this number is there.
    Acknowledged(u32),
}

/// What is known of a flow so far.
#[derive(Clone, Copy, Default)]
struct Course {
    /// Time and number of the first data.
    first: Option<(i64, u32)>,
    /// One behind the last byte that was sent, from the first.
    highest: u32,
    ended: Option<i64>,
}

/// What came of a slot: segments in the order of time, and the bottleneck's counts.
pub fn measured(slot: &Slot, seen: &[Seen], counts: &Counts) -> Run {
    let bytes = slot.cell.length * SEGMENT as u32;
    let mut flows = [Course::default(); FLOWS];
    let (mut packets, mut retransmissions) = (0, 0);
    for Seen { at_ns, flow, what } in seen {
        let Some(course) = flows.get_mut(*flow) else { continue };
        match *what {
            What::Data { sequence, length } => {
                let (_, base) = *course.first.get_or_insert((*at_ns, sequence));
                let end = sequence.wrapping_sub(base).wrapping_add(length);
                packets += 1;
                // What is in front of the first is a probe of keep-alive, and none of the bytes.
                if end <= course.highest || end > u32::MAX / 2 {
                    retransmissions += 1;
                } else {
                    course.highest = end;
                }
            }
            What::Acknowledged(number) => {
                let Some((_, base)) = course.first else { continue };
                let there = number.wrapping_sub(base);
                if (bytes..u32::MAX / 2).contains(&there) {
                    course.ended.get_or_insert(*at_ns);
                }
            }
        }
    }
    let limit_ns = slot.limit_ns();
    let earliest = flows.iter().filter_map(|course| Some(course.first?.0)).min().unwrap_or(0);
    Run {
        begun_ns: flows.map(|course| course.first.map_or(limit_ns, |(at, _)| (at - earliest).unsigned_abs())),
        times_ns: flows.map(|course| Some((course.ended? - course.first?.0).unsigned_abs())),
        limit_ns,
        wait_mean_ns: counts.waited_sum.checked_div(u128::from(counts.served)).unwrap_or(0) as u64,
        wait_max_ns: counts.waited_max as u64,
        drops: counts.dropped_full,
        packets,
        retransmissions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_text::LoadError;

    const CELL: Cell = Cell { rate: 2_000_000, rtt_ns: 20_000_000, queue: 10, length: 2, initial_window: 4 };

    fn slot(pair: &str) -> Slot {
        Slot { cell: CELL, pair: pair.parse().unwrap(), repetition: 1 }
    }

    #[test]
    fn its_networks_are_valid() {
        let pairs = ["kernel+reno", "kernel+reno_rto", "kernel+cubic", "kernel+bbr", "newreno+rack", "cubic+tb_tcp"];
        let slots = pairs.map(slot);
        let text = description("fct-test", &slots, 1, "/tmp/tcp.json");
        let reading = weftwire_network::read("t", &text, &[], &|name| Err(LoadError::Unknown(name.to_owned())));
        let said: Vec<String> = reading.diagnostics.iter().map(|it| it.message.clone()).collect();
        let network = reading.network.unwrap_or_else(|| panic!("{said:?}\n{text}"));
        assert_eq!((network.nodes.len(), network.traffic.len()), (6 * 8, 6 * 6));
        assert!(text.contains("initcwnd 4 rto_min 20ms") && text.contains("initcwnd 4\""), "{text}");
        assert_eq!(
            network.traffic[0].start,
            weftwire_core::Time::from_nanoseconds(lead_ns(&slots) as i64 + { starts(&CELL, 1, 1)[0] as i64 })
        );
        assert_eq!(lead_ns(&slots), LEAD_NS + 12 * PROCESS_NS);
        assert_eq!(lead_ns(&slots[..4]), LEAD_NS);
    }

    #[test]
    fn times_are_from_the_first_data_to_the_last_acknowledgment() {
        let at = |at_ns, flow, what| Seen { at_ns, flow, what };
        let data = |sequence, length| What::Data { sequence, length };
        // Numbers of the first wrap within its 2,896 bytes.
        let begin = u32::MAX - 1_000;
        let mut seen = vec![
            at(5, 0, What::Acknowledged(begin)),
            at(10, 0, data(begin, 1_448)),
            at(12, 0, data(begin.wrapping_add(1_448), 1_448)),
            at(20, 0, What::Acknowledged(begin.wrapping_add(1_448))),
            at(31, 0, data(begin.wrapping_add(1_448), 1_448)),
            at(40, 0, What::Acknowledged(begin.wrapping_add(2_896))),
            at(50, 0, What::Acknowledged(begin.wrapping_add(2_897))),
        ];
        for flow in 1..5 {
            seen.extend([at(11, flow, data(1, 2_896)), at(33, flow, What::Acknowledged(2_897))]);
        }
        seen.extend([at(14, 5, data(1, 1_448)), at(60, 5, What::Acknowledged(1_449)), at(70, 9, data(1, 1))]);
        let run = measured(&slot("kernel+reno"), &seen, &Counts::default());
        assert_eq!(run.begun_ns, [0, 1, 1, 1, 1, 4]);
        assert_eq!(run.times_ns, [Some(30), Some(22), Some(22), Some(22), Some(22), None]);
        assert_eq!((run.packets, run.retransmissions, run.unfinished()), (8, 1, 1));
        assert_eq!(run.slowest_ns(), run.limit_ns);
    }
}
