use super::*;
use weftwire_core::FlowId;

fn record(time: i64, flow: u64, event: &str, actions: &[&str]) -> TraceRecord {
    TraceRecord {
        time: Time::from_nanoseconds(time),
        flow: FlowId(flow),
        kind: TraceKind::Event,
        state: "open".into(),
        event: event.into(),
        row: Some(1),
        line: None,
        source: None,
        next: "open".into(),
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
        registers: Vec::new(),
    }
}

fn run(records: Vec<TraceRecord>) -> Run {
    Run { results: Results::default(), traces: vec![("box".into(), records)] }
}

fn events(names: &[&str]) -> Run {
    run(names.iter().enumerate().map(|(index, name)| record(index as i64 * 10, 1, name, &[])).collect())
}

#[test]
fn values_and_times_do_not_matter_but_are_measured() {
    let left = run(vec![
        record(
            100,
            1,
            "packet",
            &["number := number (5) + 1", "set_timer retry in 200 ns", "send work (60 bytes) to port 1"],
        ),
        record(200, 1, "packet", &[]),
        record(300, 1, "retry", &[]),
    ]);
    // The other clock started elsewhere, and its flows have other numbers.
    let right = run(vec![
        record(
            9_000,
            7,
            "packet",
            &["number := number (9) + 1", "set_timer retry in 900 ns", "send work (90 bytes) to port 2"],
        ),
        record(9_103, 7, "packet", &[]),
        record(9_200, 7, "retry", &[]),
    ]);
    let agreement = compare(&left, &right);
    assert_eq!(agreement.verdict(), Verdict::Same);
    assert!(agreement.agrees(false));
    assert_eq!(agreement.sequences[0].timing, Some(Timing { p50: 0, p99: 3, worst: 3 }));
    assert_eq!(agreement.kinds[0].actions, ["number :=", "set_timer retry", "send work"]);
}

#[test]
fn other_order_and_other_events_are_told_apart() {
    let left = events(&["a", "b", "c"]);
    let swapped = compare(&left, &events(&["a", "c", "b"]));
    assert_eq!(swapped.verdict(), Verdict::OtherOrder);
    assert_eq!(swapped.sequences[0].matched(), 2);
    let twice = compare(&left, &events(&["a", "b", "b", "c"]));
    assert_eq!(twice.verdict(), Verdict::Differs);
    assert!(!twice.agrees(false));
    assert_eq!(twice.sequences[0].first_difference(), Some(2));
    assert_eq!(twice.sequences[0].stretches, [Stretch::Same(2), Stretch::Right(1), Stretch::Same(1)]);
    let other_action =
        compare(&run(vec![record(0, 1, "a", &["send work"])]), &run(vec![record(0, 1, "a", &["discard work"])]));
    assert_eq!(other_action.verdict(), Verdict::Differs);
}

#[test]
fn the_same_states_are_enough_where_peers_send_more_or_fewer_packets() {
    let moving = |names: &[&str]| {
        let mut run = events(names);
        for record in &mut run.traces[0].1 {
            if record.event != "data" {
                record.next = format!("after {}", record.event);
            }
        }
        run
    };
    let few = moving(&["open", "data", "close"]);
    let more = compare(&few, &moving(&["open", "data", "data", "close"]));
    assert_eq!(more.verdict(), Verdict::SameStates);
    assert!(more.agrees(false));
    assert_eq!(compare(&few, &moving(&["open", "data", "reset"])).verdict(), Verdict::Differs);
    assert_eq!(compare(&few, &moving(&["data", "close", "open"])).verdict(), Verdict::OtherOrder);
}

#[test]
fn flows_are_matched_in_order_of_creation_and_missing_ones_differ() {
    let left = run(vec![record(0, 3, "b", &[]), record(1, 2, "a", &[])]);
    let right = run(vec![record(0, 10, "a", &[]), record(1, 11, "b", &[])]);
    assert!(compare(&left, &right).agrees(false));
    let fewer = compare(&left, &run(vec![record(0, 10, "a", &[])]));
    assert_eq!(fewer.sequences.iter().map(|s| s.verdict).collect::<Vec<_>>(), [Verdict::Same, Verdict::Differs]);
    let none = compare(&left, &Run::default());
    assert_eq!(none.sequences.len(), 2, "a node without a trace on one side differs");
    assert_eq!(none.verdict(), Verdict::Differs);
}

#[test]
fn samples_and_snapshots_are_no_events() {
    let mut with = events(&["a", "b"]);
    let mut sample = record(5, 1, "watch", &[]);
    sample.kind = TraceKind::Sample;
    with.traces[0].1.insert(1, sample);
    assert!(compare(&events(&["a", "b"]), &with).agrees(false));
}

fn flow(delivered: u64) -> FlowResult {
    FlowResult {
        traffic: "bulk".into(),
        from: "a".into(),
        to: "b".into(),
        transport: "arq".into(),
        end: Some(8_000_000_000),
        delivered,
        outcome: "complete".into(),
        ..FlowResult::default()
    }
}

#[test]
fn goodputs_agree_within_five_per_cent() {
    let with = |delivered: u64| {
        let mut run = Run::default();
        run.results.flows.push(flow(delivered));
        run
    };
    for (right, agrees) in [(1_000, true), (950, true), (949, false), (1_050, true), (1_051, false), (0, false)] {
        let agreement = compare(&with(1_000), &with(right));
        assert_eq!(agreement.flows[0].agrees(), agrees, "{right}");
        assert_eq!(agreement.agrees(false), agrees, "{right}");
    }
    assert!(compare(&with(0), &with(0)).agrees(false));
    assert!(!compare(&with(0), &with(1)).agrees(false));
    let missing = compare(&with(1), &Run::default());
    assert_eq!((missing.flows[0].goodput, missing.agrees(false)), ([Some(1.0), None], false));
}

#[test]
fn a_late_run_never_agrees() {
    let mut late = events(&["a"]);
    late.results.run.lateness = Some(weftwire_network::results::Lateness { late: true, ..Default::default() });
    assert!(!compare(&events(&["a"]), &late).agrees(false));
}

#[test]
fn counters_and_progress_stand_side_by_side() {
    let side = |count: u64, name: &str| {
        let mut run = Run::default();
        let mut counters = weftwire_core::inspect::Counters { frames_in: count, ..Default::default() };
        counters.drops.insert(name.into(), 1);
        run.results.functions.push(("box".into(), counters));
        run.results.flows.push(flow(1));
        run.results.progress.push(FlowProgress { flow: 0, ..FlowProgress::default() });
        run
    };
    let agreement = compare(&side(3, "x"), &side(4, "y"));
    let of =
        |name: &str| agreement.counters.iter().find(|c| c.name.as_deref() == Some(name) || c.counter == name).unwrap();
    assert_eq!(of("frames_in").counts, [Some(3), Some(4)]);
    assert_eq!((of("x").counts, of("y").counts), ([Some(1), None], [None, Some(1)]));
    assert_eq!(agreement.progress.len(), 1);
    assert!(agreement.progress[0].1.iter().all(Option::is_some));
}
