//! That a connection of the TCP in XL can't stand still: whatever it waits for has a timer behind it.

use weftwire_core::inspect::FlowDetail;

/// Most settings of timers that a connection has beside those of which there may be several.
const MOST_TIMERS: usize = 5;

/// Why a connection would never go on, as it is between two events; `None`: it goes on. `held`: bytes that its application has handed over and the
/// other end has not acknowledged, if the test knows.
pub fn standstill(flow: &FlowDetail, held: Option<usize>) -> Option<String> {
    let FlowDetail { summary, registers, timers, .. } = flow;
    let register = |name: &str| registers.iter().find(|it| it.name == name).map_or(0, |it| it.value);
    let pending = |name: &str| timers.iter().filter(|timer| timer.name == name).count();
    let state = summary.state.as_str();
    let under_way = (register("next") as u32).wrapping_sub(register("una") as u32);
    let (retransmit, probe) = (pending("retransmit"), pending("probe"));
    // Those of which there may be several: recovery's own, one for each segment if it likes.
    let (challenged, overdue) = (pending("challenged_lately"), pending("overdue"));
    let opened = !matches!(state, "closed" | "syn_sent" | "syn_received" | "time_wait");
    let waits = opened && under_way == 0 && held.is_some_and(|held| held > 0);
    let closes = matches!(state, "fin_wait_1" | "closing" | "last_ack");
    let faults = [
        (under_way > 0 && retransmit != 1, "unacknowledged without a timer"),
        (retransmit + probe > 1, "retransmission and probe at once"),
        (under_way == 0 && retransmit > 0 && state != "time_wait", "a timer for nothing"),
        (waits && probe + pending("departure") == 0, "data that waits without a timer"),
        (closes && under_way == 0 && probe + pending("departure") == 0, "a FIN that waits without a timer"),
        (state == "time_wait" && pending("linger") != 1, "it lingers for ever"),
        (state == "fin_wait_2" && register("orphan") != 0 && pending("linger") != 1, "nobody's half, for ever"),
        (challenged > 2 || timers.len() > challenged + overdue + MOST_TIMERS, "too many timers"),
    ];
    let (_, what) = faults.iter().find(|(wrong, _)| *wrong)?;
    Some(format!("{what} in {state}: {under_way} bytes under way, {held:?} held, {timers:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weftwire_core::inspect::{FlowSummary, PendingTimer, RegisterValue};
    use weftwire_core::{FlowId, Time};

    /// A connection in a state, with bytes under way and timers.
    fn flow(state: &str, under_way: i64, orphan: i64, timers: &[&str]) -> FlowDetail {
        let register = |(name, value): (&str, i64)| RegisterValue { name: name.into(), value, text: value.to_string() };
        let timer = |name: &&str| PendingTimer { name: (*name).into(), due: Time::ZERO, payload: Vec::new() };
        let next = (0xffff_ffff + under_way) & 0xffff_ffff;
        FlowDetail {
            summary: FlowSummary {
                flow: FlowId(1),
                key: String::new(),
                state: state.into(),
                created: Time::ZERO,
                last_active: Time::ZERO,
                events: 1,
            },
            registers: [("una", 0xffff_ffff), ("next", next), ("orphan", orphan)].map(register).into(),
            timers: timers.iter().map(timer).collect(),
            turns: Vec::new(),
            packets: Vec::new(),
            counters: BTreeMap::new(),
        }
    }

    #[test]
    fn what_can_stand_still_is_told() {
        for (state, under_way, orphan, timers, held, fault) in [
            ("established", 0, 0, &[][..], 0, None),
            ("established", 5, 0, &["retransmit", "keepalive"][..], 5, None),
            ("established", 5, 0, &[], 5, Some("unacknowledged")),
            ("established", 5, 0, &["retransmit", "probe"], 5, Some("at once")),
            ("established", 0, 0, &["retransmit"], 0, Some("for nothing")),
            ("established", 0, 0, &["probe"], 5, None),
            ("close_wait", 0, 0, &["keepalive"], 5, Some("data that waits")),
            ("last_ack", 0, 0, &[], 0, Some("a FIN that waits")),
            ("last_ack", 1, 0, &["retransmit"], 0, None),
            ("fin_wait_2", 0, 0, &[], 0, None),
            ("fin_wait_2", 0, 1, &[], 0, Some("nobody's half")),
            ("time_wait", 0, 0, &[], 0, Some("lingers")),
            ("established", 5, 0, &["retransmit", "a", "b", "c", "d", "e"], 5, Some("too many")),
        ] {
            let found = standstill(&flow(state, under_way, orphan, timers), Some(held));
            let right =
                found.as_ref().map_or(fault.is_none(), |found| fault.is_some_and(|fault| found.contains(fault)));
            assert!(right, "{state} {timers:?}: {found:?} in place of {fault:?}");
        }
    }
}
