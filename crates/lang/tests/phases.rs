//! The phases of modules, from their source.

use weftwire_lang::{PhaseChange, phases};

const PROGRAM: &str = "machine one;
const STILL = 0;
const UNUSED = 9;

interface control {
    register level: u8;
    action told(count: u32);
    action lost() { level = STILL; }
    action rested() {}
}

action settle(what: u8) { level = what; }

module walker is control {
    const WALKS = 1;
    const RUNS = 2;
    register stuck: u8;

    action told(count: u32) {
        if level == STILL and count > UNUSED { level = WALKS; }
        else if level == WALKS and stuck >= 3 { settle(RUNS); }
        if level == RUNS and count == 0 { tire(); }
    }
    action tire() {
        if stuck > 7 { level = STILL; } else { level = WALKS; }
        stuck = 0;
    }
    action rested() { if (level == WALKS or level == RUNS) and stuck > 0 { settle(STILL); } }
    action nobody_calls() { level = RUNS; }
}

module other is control { action told(count: u32) {} }
use control from walker, other by parameter which = walker;
initial state only { on packet { told(1); } }
";

#[test]
fn a_register_of_constants_has_phases_with_what_leads_from_one_to_another() {
    let found = phases("one.xl", &PROGRAM, "walker", "level").expect("walker has them");
    assert_eq!(found.names, ["STILL", "WALKS", "RUNS"], "those that the register is compared with or set to, by value");
    let change = |from, to, event: &str, conditions: &[&str]| PhaseChange {
        from,
        to,
        event: event.to_owned(),
        conditions: conditions.iter().map(|text| (*text).to_owned()).collect(),
    };
    let wanted = [
        change(0, 1, "told", &["count > UNUSED"]),
        change(1, 0, "rested", &["stuck > 0"]),
        change(1, 2, "told", &["stuck >= 3"]),
        change(2, 0, "rested", &["stuck > 0"]),
        change(2, 0, "told", &["count == 0", "stuck > 7"]),
        change(2, 1, "told", &["count == 0"]),
    ];
    let mut all = found.changes.clone();
    all.sort_by_key(|change| (change.from, change.to, change.event.clone()));
    assert_eq!(all, wanted);
}

#[test]
fn without_phases_there_are_none() {
    for (module, register) in [("walker", "stuck"), ("other", "level"), ("nobody", "level")] {
        assert_eq!(phases("one.xl", &PROGRAM, module, register), None, "{module}.{register}");
    }
    assert_eq!(phases("broken.xl", &"module walker is {", "walker", "level"), None);
}
