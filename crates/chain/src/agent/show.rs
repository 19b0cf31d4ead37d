//! What an agent shows of its sessions.

use crate::lock::{Lock, State};
use crate::paths::{Shift, Side, Stage};
use crate::session::{LEFT, Path, RIGHT, Session};
use std::collections::BTreeMap;
use weftwire_core::inspect::{FlowDetail, FlowSummary, RegisterValue};

/// One line about a session: its ends, and its subsessions.
pub(super) fn summary(session: &Session) -> FlowSummary {
    let side = |name: &str, path: &Option<Path>| {
        path.as_ref().map(|path| format!(", {name} {}", path.tuple)).unwrap_or_default()
    };
    let key = format!("{}{}{}", session.entering, side("left", &session.left), side("right", &session.right));
    FlowSummary {
        flow: session.flow,
        key,
        state: session.phase.name().to_owned(),
        created: session.created,
        last_active: session.active,
        events: session.packets,
    }
}

/// All about a session. Each path is a group of registers, `left`, `right`, `new_left` and `new_right`: its headers, the agent at its other
/// end, and what numbers on it are lower by than those of the host.
pub(super) fn detail(session: &Session) -> FlowDetail {
    let mut registers = vec![
        text("entering", session.entering),
        text("leaving", session.leaving),
        text("lock", session.lock.as_deref().map_or("free", lock)),
    ];
    for (face, [old, new]) in [(LEFT, ["left", "new_left"]), (RIGHT, ["right", "new_right"])] {
        let current = if face == LEFT { &session.left } else { &session.right };
        let anchor = session.faces[face].as_ref().map(|face| &face.anchor);
        let shift = |side| anchor.map_or(Shift::default(), |anchor| anchor.shift(side));
        if let Some(path) = current {
            show(&mut registers, old, path, shift(Side::Old));
        }
        if let Some(path) = session.new_path(face) {
            show(&mut registers, new, path, shift(Side::New));
        }
        if let Some(anchor) = anchor {
            registers.push(text(&format!("{old}.stage"), stage(anchor.stage())));
        }
    }
    FlowDetail {
        summary: summary(session),
        registers,
        timers: Vec::new(),
        turns: Vec::new(),
        packets: Vec::new(),
        counters: BTreeMap::from([("packets".into(), session.packets), ("lists".into(), session.lists.into())]),
    }
}

fn show(registers: &mut Vec<RegisterValue>, name: &str, path: &Path, shift: Shift) {
    registers.push(text(name, path.tuple));
    if let Some(agent) = path.agent {
        registers.push(number(&format!("{name}.agent"), agent.into()));
    }
    registers.push(number(&format!("{name}.leaving"), (shift.leaving as i32).into()));
    registers.push(number(&format!("{name}.arriving"), (shift.arriving as i32).into()));
}

fn text(name: &str, text: impl ToString) -> RegisterValue {
    RegisterValue { name: name.to_owned(), value: 0, text: text.to_string() }
}

fn number(name: &str, value: i64) -> RegisterValue {
    RegisterValue { name: name.to_owned(), value, text: value.to_string() }
}

fn lock(lock: &Lock) -> &'static str {
    match lock.state() {
        State::Unlocked if lock.is_free() => "free",
        State::Unlocked => "anchor",
        State::Pending => "pending",
        State::Locked => "locked",
        State::Cancelling => "cancelling",
        State::Releasing => "releasing",
    }
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::One => "one_path",
        Stage::Waiting => "waiting",
        Stage::Two => "two_paths",
    }
}
