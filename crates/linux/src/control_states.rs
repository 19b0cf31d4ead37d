//! Flows out of a running function and into it, as clients of the control socket ask.

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
