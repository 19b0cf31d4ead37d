//! Flows out of a running function and into it, and the state of all of it, as clients of the control socket ask.

use crate::control::{MAX_PAGE, MAX_STATE, Response, STATE_PAGE, State, StatePage};
use crate::control_server::Asked;
use weftwire_core::control::Done;
use weftwire_core::{Change, ControlError, FlowId};

/// The state of one flow; with `take` it is in the function no more.
pub(crate) fn state(asked: &mut Asked<'_>, flow: FlowId, take: bool) -> Result<Response, ControlError> {
    let (now, clocks) = (asked.time)(false);
    let bytes = match take {
        false => asked.function.snapshot(flow, Some(&clocks))?,
        true => match asked.change(now, Change::Take { flow, clocks: Some(clocks) })? {
            Done::State(bytes) => bytes,
            Done::Done | Done::Flow(_) => return Err(ControlError::Unsupported("flows")),
        },
    };
    Ok(Response::States(StatePage { states: vec![State { flow, bytes }], next: None }))
}

/// The states of the flows behind this one, so many that frames need not wait for long.
pub(crate) fn states(asked: &mut Asked<'_>, after: Option<FlowId>) -> Result<Response, ControlError> {
    let (_, clocks) = (asked.time)(false);
    let flows = asked.function.flows_after(after.unwrap_or_default(), MAX_PAGE);
    let mut page = StatePage { states: Vec::new(), next: flows.next };
    let mut length = 0;
    for (number, flow) in flows.flows.iter().map(|summary| summary.flow).enumerate() {
        let bytes = asked.function.snapshot(flow, Some(&clocks))?;
        length += bytes.len();
        page.states.push(State { flow, bytes });
        if length >= STATE_PAGE && number + 1 < flows.flows.len() {
            page.next = Some(flow);
            break;
        }
    }
    Ok(Response::States(page))
}

/// The state of the whole function. Its time goes on from now on, if it stood still.
pub(crate) fn whole(asked: &mut Asked<'_>) -> Result<Response, ControlError> {
    let (_, clocks) = (asked.time)(true);
    Ok(Response::Whole { state: asked.function.whole(Some(&clocks))? })
}

/// One more part of a state that a client sends; with the last one the flow is put in.
pub(crate) fn adopt(
    asked: &mut Asked<'_>,
    parts: &mut Vec<u8>,
    part: &[u8],
    more: bool,
) -> Result<Response, ControlError> {
    if parts.len() + part.len() > MAX_STATE {
        parts.clear();
        return Err(ControlError::Unfit(format!("a state has at most {MAX_STATE} bytes")));
    }
    parts.extend(part);
    if more {
        return Ok(Response::Done {});
    }
    let (now, clocks) = (asked.time)(true);
    match asked.change(now, Change::Adopt { state: std::mem::take(parts), clocks: Some(clocks) })? {
        Done::Flow(flow) => Ok(Response::Adopted { flow }),
        Done::Done | Done::State(_) => Err(ControlError::Unsupported("flows")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_core::control::Answer;
    use weftwire_core::inspect::{FlowSummary, Inspect};
    use weftwire_core::live::Clocks;
    use weftwire_core::{Arrivals, Command, Deadline, Function, Outbox, Time};

    /// Flows whose states have so many bytes; it remembers what it adopted.
    struct Large {
        states: Vec<usize>,
        adopted: Vec<Vec<u8>>,
    }

    impl Inspect for Large {
        fn flows(&self) -> Vec<FlowSummary> {
            let flow = |number| FlowSummary {
                flow: FlowId(number),
                key: String::new(),
                state: String::new(),
                created: Time::ZERO,
                last_active: Time::ZERO,
                events: 0,
            };
            (1..=self.states.len() as u64).map(flow).collect()
        }

        fn snapshot(&self, flow: FlowId, _: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
            Ok(vec![flow.0 as u8; self.states[flow.0 as usize - 1]])
        }
    }

    impl Function for Large {
        fn frames(&mut self, _: Time, _: &mut Arrivals, _: &mut Outbox) {}

        fn control(&mut self, at: Time, command: Command, out: &mut Outbox) {
            if let Change::Adopt { state, .. } = command.change {
                self.adopted.push(state);
                out.answer(Answer { number: command.number, at, result: Ok(Done::Flow(FlowId(7))) }, None);
            }
        }

        fn fire(&mut self, _: Time, _: &mut Outbox) {}

        fn next_deadline(&self) -> Option<Deadline<'_>> {
            None
        }
    }

    fn asking<R>(function: &mut Large, ask: impl FnOnce(&mut Asked<'_>) -> R) -> R {
        let (out, mut time) = (&mut Outbox::new(), |_| (Time::ZERO, Clocks::default()));
        ask(&mut Asked { function, out, ports: &mut Vec::new, time: &mut time })
    }

    #[test]
    fn a_page_of_states_ends_where_frames_would_wait_for_long() {
        let states = [&[100; 40][..], &[STATE_PAGE, 5, STATE_PAGE - 5, 9]].concat();
        let mut function = Large { states, adopted: vec![] };
        let (mut after, mut pages) = (None, Vec::new());
        loop {
            let answer = asking(&mut function, |asked| page_of(asked, after));
            pages.push(answer.states.iter().map(|state| (state.flow.0, state.bytes.len())).collect::<Vec<_>>());
            after = answer.next;
            if after.is_none() {
                break;
            }
        }
        let flows: Vec<u64> = pages.iter().flatten().map(|(flow, _)| *flow).collect();
        assert!(flows.into_iter().eq(1..=44), "{pages:?}");
        let lengths: Vec<usize> = pages.iter().map(Vec::len).collect();
        assert_eq!(lengths, [MAX_PAGE, 9, 2, 1]);
    }

    fn page_of(asked: &mut Asked<'_>, after: Option<FlowId>) -> StatePage {
        match states(asked, after) {
            Ok(Response::States(page)) => page,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_state_comes_in_parts_and_is_not_longer_than_any() {
        let mut function = Large { states: vec![], adopted: vec![] };
        let mut parts = Vec::new();
        for (part, more, expected) in [
            (&b"one"[..], true, Ok(Response::Done {})),
            (b" two", false, Ok(Response::Adopted { flow: FlowId(7) })),
            (b"three", false, Ok(Response::Adopted { flow: FlowId(7) })),
        ] {
            assert_eq!(asking(&mut function, |asked| adopt(asked, &mut parts, part, more)), expected);
        }
        assert_eq!(function.adopted, [&b"one two"[..], b"three"]);
        parts = vec![0; MAX_STATE];
        let refused = asking(&mut function, |asked| adopt(asked, &mut parts, b"x", true));
        assert_eq!(refused, Err(ControlError::Unfit(format!("a state has at most {MAX_STATE} bytes"))));
        assert!(parts.is_empty());
    }
}
