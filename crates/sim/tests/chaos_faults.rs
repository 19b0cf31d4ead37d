//! Schedules of faults: sensible, merged with the network's own changes as they should be, and the same as text.

use std::collections::BTreeMap;
use std::time::Duration;
use weftwire_core::Time;
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Loss};
use weftwire_network::model::{Change, ChangeKind, FieldFault, NodeIndex};
use weftwire_sim::chaos::{Fault, FaultKind, Impairment, expand, schedule, to_toml};
use weftwire_text::LoadError;

/// A network with faults of every kind of its own, so that most random ones overlap some.
const NETWORK: &str = r#"
name = "busy"
duration = "10s"

[nodes.a]
kind = "function"
image = "a.xl"

[nodes.b]
kind = "function"
image = "b.xl"

[[links]]
name = "line"
between = ["a", "b"]
delay = "10ms"
loss = { good_to_bad = 0.01, bad_to_good = 0.3 }

[[traffic]]
kind = "bulk"
from = "a"
to = "b"
transport = "udp"
bytes = "1MB"

[[changes]]
at = "3s"
link = "line"
direction = "forward"
delay = "20ms"
duplicate = 0.01

[[changes]]
at = "5s"
link = "line"
loss = 0.002

[[faults]]
at = "1s"
for = "3s"
kind = "link-down"
link = "line"
direction = "backward"

[[faults]]
at = "2s"
for = "3s"
kind = "blackhole"
link = "line"
direction = "forward"

[[faults]]
at = "1500ms"
for = "4s"
kind = "corrupt-field"
link = "line"
direction = "forward"
field = "udp.checksum"

[[faults]]
at = "2500ms"
for = "2s"
kind = "clock"
node = "a"
drift_ppm = 777
"#;

fn read(text: &str) -> Network {
    let reading = weftwire_network::read("busy.toml", text, &[], &|name| Err(LoadError::Unknown(name.to_owned())));
    let errors: Vec<_> = reading.diagnostics.iter().map(|diagnostic| &diagnostic.message).collect();
    reading.network.unwrap_or_else(|| panic!("{errors:?}\n{text}"))
}

/// Everything that changes can make different.
#[derive(Clone, PartialEq, Debug, Default)]
struct State {
    down: [bool; 2],
    blackhole: [bool; 2],
    field: [Option<FieldFault>; 2],
    settings: [LinkSettings; 2],
    drift: [i64; 2],
    leaps: [Duration; 2],
    restarts: [u32; 2],
}

/// The state just before `until`, of the network's one link and two nodes.
fn state(network: &Network, changes: &[Change], until: Time) -> State {
    let mut state = State { settings: network.links[0].directions.clone(), ..State::default() };
    for change in changes.iter().filter(|change| change.at < until) {
        match &change.what {
            ChangeKind::Settings { direction, settings, .. } => state.settings[*direction] = (**settings).clone(),
            ChangeKind::Down { direction, .. } => state.down[*direction] = true,
            ChangeKind::Up { direction, .. } => state.down[*direction] = false,
            ChangeKind::Blackhole { direction, on, .. } => state.blackhole[*direction] = *on,
            ChangeKind::CorruptField { direction, field, .. } => state.field[*direction] = field.clone(),
            ChangeKind::Restart { node } => state.restarts[node.0 as usize] += 1,
            ChangeKind::Clock { node, drift_ppm, leap } => {
                state.drift[node.0 as usize] = *drift_ppm;
                state.leaps[node.0 as usize] += *leap;
            }
        }
    }
    state
}

/// What holds just before `until`: the own state, and on top of it every fault that has begun and is not over.
fn wanted(network: &Network, faults: &[Fault], until: Time) -> State {
    let mut state = state(network, &network.changes, until);
    let mut latest: BTreeMap<(u8, usize), Time> = BTreeMap::new();
    for fault in faults.iter().filter(|fault| fault.at < until) {
        let active = until <= fault.end();
        // Of several faults that set a value the one that began last counts.
        let mut is_latest = |kind, place| {
            let last = latest.entry((kind, place)).or_insert(fault.at);
            *last = fault.at.max(*last);
            *last == fault.at
        };
        match &fault.what {
            FaultKind::LinkDown { .. } if active => state.down = [true; 2],
            FaultKind::Blackhole { direction, .. } if active => state.blackhole[*direction] = true,
            FaultKind::CorruptField { direction, field, .. } if active && is_latest(0, *direction) => {
                state.field[*direction] = Some(field.clone());
            }
            FaultKind::Clock { node, drift_ppm, leap } => {
                let node = node.0 as usize;
                state.leaps[node] += *leap;
                if active && is_latest(1, node) {
                    state.drift[node] = *drift_ppm;
                }
            }
            FaultKind::Restart { node } => state.restarts[node.0 as usize] += 1,
            FaultKind::Impair { direction, impairment, .. } if active => {
                let settings = &mut state.settings[*direction];
                match *impairment {
                    Impairment::Loss(share) => {
                        settings.loss = Loss::Random(match settings.loss {
                            Loss::Random(before) => before.max(share),
                            Loss::GilbertElliott { .. } => share,
                        });
                    }
                    Impairment::Delay(more) => settings.delay += more,
                    Impairment::Reorder(share, more) => {
                        settings.reorder = settings.reorder.max(share);
                        settings.reorder_delay = settings.reorder_delay.max(more);
                    }
                    Impairment::Duplicate(share) => settings.duplicate = settings.duplicate.max(share),
                    Impairment::Corrupt(share) => settings.corrupt = settings.corrupt.max(share),
                }
            }
            _ => {}
        }
    }
    state
}

#[test]
fn overlapping_faults_begin_and_end_as_they_should() {
    let network = read(NETWORK);
    for seed in 0..300 {
        let faults = schedule(&network, seed);
        let changes = expand(&network, &faults);
        assert!(changes.is_sorted_by_key(|change| change.at));
        let pasted = read(&format!("{NETWORK}\n{}", to_toml(&faults, &network)));
        // Just behind each change, and somewhere between.
        let instants = changes
            .iter()
            .map(|change| change.at.after(1))
            .chain((0..100).map(|step| Time::from_nanoseconds(step * 99_999_989)));
        for until in instants.filter(|until| *until <= Time::ZERO.plus(network.duration)) {
            let wanted = wanted(&network, &faults, until);
            assert_eq!(state(&network, &changes, until), wanted, "seed {seed} before {until}: {faults:#?}");
            assert_eq!(state(&pasted, &pasted.changes, until), wanted, "seed {seed} before {until}, as text");
        }
    }
}

#[test]
fn without_faults_nothing_changes() {
    let network = read(NETWORK);
    assert_eq!(expand(&network, &[]), network.changes);
    assert_eq!(to_toml(&[], &network), "");
}

#[test]
fn schedules_are_sensible_and_of_every_kind() {
    let network = read(NETWORK);
    let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..300 {
        let faults = schedule(&network, seed);
        assert_eq!(faults, schedule(&network, seed));
        assert!((1..=8).contains(&faults.len()), "{}", faults.len());
        for fault in faults {
            assert!((0..=7_000_000_000).contains(&fault.at.nanoseconds()), "{fault:?}");
            let kind = match &fault.what {
                FaultKind::LinkDown { .. } => "down",
                FaultKind::Blackhole { .. } => "blackhole",
                FaultKind::CorruptField { field, .. } => {
                    assert!(field.field.starts_with("ipv4.") || field.field.starts_with("udp."), "{}", field.field);
                    assert!(field.mask > 0 && field.mask <= 0xff);
                    "field"
                }
                FaultKind::Restart { .. } => "restart",
                FaultKind::Clock { .. } => "clock",
                FaultKind::Impair { .. } => "impair",
            };
            let least = if kind == "restart" { 0 } else { 1 };
            let lengths = Duration::from_millis(least)..=Duration::from_secs(1);
            assert!(lengths.contains(&fault.lasts), "{fault:?}");
            *kinds.entry(kind).or_default() += 1;
        }
    }
    assert_eq!(kinds.len(), 6, "{kinds:?}");
}

#[test]
fn what_is_not_there_is_not_hit() {
    let mut network = read(NETWORK);
    let faults = [Fault { at: Time::ZERO, lasts: Duration::ZERO, what: FaultKind::Restart { node: NodeIndex(7) } }];
    assert_eq!(expand(&network, &faults), network.changes);
    network.nodes.clear();
    network.links.clear();
    network.changes.clear();
    assert_eq!(schedule(&network, 1), []);
}
