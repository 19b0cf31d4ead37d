//! Every promise of the image, broken once: the verifier says where.

mod support;

use support::*;
use weftwire_image::limits::*;
use weftwire_image::*;

/// The findings of an image, as text; empty if it is good.
fn findings(mut image: Image) -> Vec<String> {
    image.seal();
    match image.verify() {
        Ok(_) => Vec::new(),
        Err(ImageError::Invalid(findings)) => findings.list.iter().map(ToString::to_string).collect(),
        Err(error) => panic!("{error}"),
    }
}

/// Changes the rich image and expects exactly one finding, at `path`, that says `problem`.
fn refuse(path: &str, problem: &str, change: impl FnOnce(&mut Image)) {
    let mut image = rich();
    change(&mut image);
    let found = findings(image);
    assert_eq!(found.len(), 1, "expected one finding at {path}, not {found:#?}");
    assert!(found[0].starts_with(&format!("{path}: ")), "expected {path}: {}", found[0]);
    assert!(found[0].contains(problem), "expected `{problem}`: {}", found[0]);
}

#[test]
fn good_images_pass() {
    assert_eq!(findings(machine()), [""; 0]);
    assert_eq!(findings(rich()), [""; 0]);
}

#[test]
fn documents_come_back_as_they_went() {
    let image = verified(rich());
    let bytes = image.to_json();
    assert_eq!(VerifiedImage::from_json(&bytes).unwrap(), image);
    assert_eq!(image.clone().into_image().to_json(), bytes);
    assert_eq!(bytes.last(), Some(&b'\n'));
    assert!(image.digest.starts_with("sha256:") && image.digest.len() == 7 + 64);
}

#[test]
fn other_forms_are_refused_with_their_line() {
    let error = |text: &str| VerifiedImage::from_json(text.as_bytes()).unwrap_err().to_string();
    assert!(error("{").contains("line 1"));
    assert!(error("{\"surprise\": 1}").contains("unknown field `surprise`"));
    assert!(error("{\"weftwire_image\": 2}").contains("missing field"));
    let long = vec![b' '; MAX_DOCUMENT + 1];
    assert!(matches!(VerifiedImage::from_json(&long), Err(ImageError::TooLong { .. })));
}

#[test]
fn head() {
    refuse("weftwire_image", "version 3", |image| image.weftwire_image = 3);
    refuse("name", "empty", |image| image.name.clear());
    let mut image = rich();
    image.seal();
    image.name = "other".into();
    assert!(image.verify().unwrap_err().to_string().starts_with("digest: "));
}

/// Documents of other releases are told from broken ones before anything else of them is read.
#[test]
fn other_versions_say_what_to_do() {
    let error = |text: &str| VerifiedImage::from_json(text.as_bytes()).unwrap_err();
    let old = error("{\"weftwire_image\": 1, \"whatever\": []}");
    assert_eq!(old, ImageError::Version { found: 1 });
    assert!(old.to_string().contains("compile its program again with `weft compile`"), "{old}");
    let newer = error("{\"weftwire_image\": 2, \"features\": [\"random\", \"telepathy\"], \"whatever\": []}");
    assert_eq!(newer, ImageError::UnknownFeatures { names: vec!["telepathy".into()] });
    assert!(newer.to_string().contains("needs `telepathy`"), "{newer}");
}

#[test]
fn features() {
    let names =
        |image: &Image| image.used_features().iter().map(ToString::to_string).collect::<Vec<String>>().join(" ");
    assert_eq!(names(&machine()), "notices slots");
    assert_eq!(
        names(&rich()),
        "application build division evict_oldest_in expiry flow_hash hash imported_formats internal_events keep_options \
         notices passed_packets random resize reverse samples slots snapshots tables timers"
    );
    // A list that says more, less, or in another order than the image uses.
    let changes: [fn(&mut Vec<Feature>); 3] =
        [|list| list.push(Feature::Copy), |list| list.truncate(5), |list| list.reverse()];
    for change in changes {
        let mut image = rich();
        image.seal();
        change(&mut image.features);
        image.digest = image.computed_digest();
        let error = image.verify().unwrap_err().to_string();
        assert!(
            error.starts_with("features: these are not the features") && error.contains("`application`, `build`"),
            "{error}"
        );
    }
}

#[test]
fn scratch_registers_are_written_before_they_are_read() {
    // Register 2 is the scratch one; the preparation of state 0's packet event writes it.
    let problem = "`hash` is read before it is written";
    let read = || notify(Operand::Register(2));
    refuse("rows[7]", problem, |image| image.rows[7].operations.insert(0, read()));
    refuse("rows[0]", problem, |image| image.preparations.clear());
    // What an event has written, the internal events raised from it may read...
    let mut image = rich();
    image.rows[2].operations.push(read());
    assert_eq!(findings(image), [""; 0]);
    // ... if every way to them has written it.
    refuse("rows[2]", problem, |image| {
        image.rows[2].operations.push(read());
        image.rows.push(Row { raise: Some(0), ..row(0, Event::Close, vec![]) });
    });
    // Rows of an event do not see what its other rows have written.
    refuse("rows[14]", problem, |image| {
        image.rows.push(row(1, Event::Packet, vec![set(2, constant(1)), read()]));
        image.rows.push(row(1, Event::Packet, vec![read()]));
    });
}

#[test]
fn sources() {
    refuse("rows[0].source", "no source 1", |image| image.rows[0].source = 1);
    refuse("debug.sources[0]", "empty", |image| image.debug.sources.push(String::new()));
    let mut image = rich();
    image.debug.sources = vec!["library.xl".into()];
    image.rows[0].source = 1;
    assert_eq!(findings(image.clone()), [""; 0]);
    assert_eq!((image.debug.source(0), image.debug.source(1), image.debug.source(2)), (None, Some("library.xl"), None));
}

#[test]
fn names() {
    refuse("registers[1]", "`count` again", |image| image.registers[1].name = "count".into());
    refuse("states[2]", "empty", |image| image.states[2].name.clear());
    refuse("slots[0]", "control characters", |image| image.slots[0] = "a\nb".into());
    refuse("notices[0]", "200 bytes", |image| image.notices[0] = "x".repeat(200));
    refuse("timers[1].payload[1]", "`sequence` again", |image| image.timers[1].payload[1] = "sequence".into());
    refuse("debug.points[1]", "`resent` again", |image| image.debug.points.push("resent".into()));
}

#[test]
fn registers() {
    refuse("registers[0].initial", "would keep 0", |image| image.registers[0].initial = 1 << 32);
    refuse("registers[2].initial", "no value when an event begins", |image| image.registers[2].initial = 1);
}

#[test]
fn flow() {
    refuse("flow.expire", "negative", |image| image.flow.expire = -1);
    refuse("flow.max", "0 instances", |image| image.flow.max = 0);
    refuse("flow.max_timers", "too many", |image| image.flow.max_timers = 1 << 20);
    refuse("flow.source[1]", "no field 99", |image| image.flow.source[1] = 99);
    refuse("flow.destination", "1 fields", |image| image.flow.destination.truncate(1));
    refuse("flow.destination[1]", "128 bits", |image| image.flow.destination[1] = fields::SOURCE);
    refuse("flow.common[0]", "`connect` can't know", |image| image.flow.common[0] = fields::TTL);
    refuse("flow.symmetric", "without sides", |image| {
        image.flow.source.clear();
        image.flow.destination.clear();
    });
    refuse("states[1].expire", "negative", |image| image.states[1].expire = Some(-1));
    let groups = |states: Vec<u16>, idle| WhenFull::EvictInTurn(vec![Eviction { states, idle, above: 0 }]);
    refuse("flow.when_full.evict_in_turn[0].states[1]", "no state 3", |image| {
        image.flow.when_full = groups(vec![0, 3], 0)
    });
    refuse("flow.when_full.evict_in_turn[0].states[1]", "a second time", |image| {
        image.flow.when_full = groups(vec![0, 0], 0)
    });
    refuse("flow.when_full.evict_in_turn[0].idle", "negative", |image| image.flow.when_full = groups(vec![0], -1));
    refuse("flow.when_full.evict_in_turn", "too many", |image| {
        image.flow.when_full = WhenFull::EvictInTurn(vec![Eviction::default(); 17]);
    });
    refuse("flow.when_full.evict_oldest_in[2]", "no state 3", |image| {
        image.flow.when_full = WhenFull::EvictOldestIn(vec![0, 1, 3]);
    });
    refuse("other_packets.pass[1]", "twice", |image| image.other_packets = OtherPackets::Pass(vec![(1, 2), (3, 2)]));
    refuse("other_packets.pass[0]", "port 0", |image| image.other_packets = OtherPackets::Pass(vec![(0, 2)]));
}

#[test]
fn formats_and_fields() {
    refuse("formats[0]", "not the built-in format", |image| image.formats[0].fields[2].offset = 1);
    refuse("formats[5]", "ends 64 bits", |image| image.formats[5].length = 56);
    refuse("formats[5]", "`udq`", |image| {
        let Place::After { header, .. } = &mut image.formats[5].place else { panic!("an imported format") };
        *header = "udq".into();
        image.templates[1].headers.clear();
        image.templates[1].presets.truncate(0);
    });
    refuse("fields[7].field", "no field `flagz`", |image| {
        image.fields[7].field = "flagz".into();
    });
    refuse("fields[10]", "same field again", |image| image.fields[9] = image.fields[10].clone());
}

#[test]
fn templates_and_creation() {
    refuse("templates[0].tcp_options[1]", "kind 9", |image| image.templates[0].tcp_options[1] = 9);
    refuse("templates[0].tcp_options[1]", "2 again", |image| image.templates[0].tcp_options[1] = 2);
    refuse("templates[1].tcp_options", "in a UDP packet", |image| image.templates[1].tcp_options.push(2));
    refuse("templates[0].headers[0]", "stands behind `tcp`", |image| image.templates[0].headers.push("report".into()));
    refuse("templates[0].headers[0]", "no imported format", |image| image.templates[0].headers.push("udp".into()));
    refuse("templates[1].presets[0]", "no header `tcp`", |image| image.templates[1].presets[0].0 = fields::TCP_FLAGS);
    refuse("templates[0].presets[0]", "says what the packet is", |image| {
        image.templates[0].presets[0].0 = fields::PROTOCOL;
    });
    refuse("creation[0].slot", "no slot 2", |image| image.creation[0].slot = 2);
    refuse("creation[1].slot", "already", |image| image.creation[1] = image.creation[0].clone());
}

#[test]
fn tables_and_samples() {
    refuse("tables[0].entries", "empty", |image| image.tables[0].entries.clear());
    refuse("tables[0].base", "beyond all indexes", |image| image.tables[0].base = i64::MAX);
    refuse("tables", "1048577 entries", |image| image.tables[0].entries = vec![0; MAX_TABLE_ENTRIES + 1]);
    refuse("debug.samples[0].register", "scratch", |image| image.debug.samples[0].register = 2);
    refuse("debug.samples[0].interval", "999 ns", |image| image.debug.samples[0].interval = 999);
}

#[test]
fn preparations() {
    refuse("preparations[1]", "second preparation", |image| image.preparations.push(image.preparations[0].clone()));
    refuse("preparations[0].operations[0].register", "stored", |image| {
        image.preparations[0].operations[0] = set(0, constant(1));
    });
    refuse("preparations[0].operations[1]", "action", |image| {
        image.preparations[0].operations[1] = Operation::DeleteInstance;
    });
}

#[test]
fn conditions_and_rows() {
    refuse("conditions[0].left.register", "no register 4; use 0 to 3", |image| {
        image.conditions[0].left = Operand::Register(4);
    });
    refuse("rows[0].when[1]", "too late", |image| image.rows[0].when = vec![(2, true), (0, true)]);
    refuse("rows[0].when[1]", "no condition 3", |image| image.rows[0].when[1].0 = 3);
    refuse("rows[10].when[0]", "no value of this event", |image| image.rows[10].when = vec![(1, true)]);
    refuse("rows[0].state", "no state 3", |image| image.rows[0].state = 3);
    refuse("rows[0].next", "no state 3", |image| image.rows[0].next = Some(3));
    refuse("rows[10].event.timer", "no timer 2", |image| image.rows[10].event = Event::Timer(2));
    refuse("rows[3].event.internal", "no internal event 2", |image| image.rows[3].event = Event::Internal(2));
    refuse("rows[2].raise", "raised from internal event 0", |image| image.rows[2].raise = Some(0));
    refuse("rows[1].raise", "no internal event 2", |image| image.rows[1].raise = Some(2));
}

#[test]
fn operations() {
    let refuse_operation = |path: &str, problem: &str, operation: Operation| {
        refuse(&format!("rows[8].operations[0]{path}"), problem, |image| image.rows[8].operations[0] = operation);
    };
    refuse_operation(".register", "no register", set(4, constant(0)));
    refuse_operation(".left.field.field", "128 bits", set(0, field(PacketRef::Work, fields::SOURCE)));
    refuse_operation(".left.field.packet.slot", "no slot", set(0, field(PacketRef::Slot(9), fields::TTL)));
    refuse_operation(".left", "no value of this event 1", set(0, Operand::Event(1)));
    refuse_operation("", "uses none", compute(Operator::Random, 0, constant(0), constant(1)));
    let element = |first, count| Operation::Element { register: 0, first, count, index: constant(0) };
    refuse_operation(".count", "no such row of registers", element(0, 0));
    refuse_operation(".count", "no such row of registers", element(1, u16::MAX));
    refuse_operation(".table", "no table", Operation::Lookup { table: 1, register: 0, index: constant(0) });
    let value = constant(1);
    let work = PacketRef::Work;
    let current = PacketRef::Current;
    refuse_operation(
        ".field",
        "128 bits",
        Operation::SetField { packet: work, field: fields::SOURCE, value, optional: false },
    );
    refuse_operation(
        ".field",
        "what the packet is",
        Operation::SetField { packet: work, field: fields::PROTOCOL, value, optional: false },
    );
    refuse_operation(".kinds[1]", "padding", Operation::KeepOptions { packet: work, kinds: vec![2, 1] });
    refuse_operation(".to", "`work` or a slot", Operation::Copy { from: work, to: current });
    refuse_operation(".to", "`work` or a slot", Operation::Build { template: 0, to: current, options: Vec::new() });
    refuse_operation(".template", "no template", Operation::Build { template: 2, to: work, options: Vec::new() });
    refuse_operation(".packet", "`work` or a slot", Operation::Discard { packet: current });
    let zero = constant(0);
    refuse_operation(".packet", "`work`", Operation::AppendData { packet: current, offset: zero, length: zero });
    refuse_operation(".timer", "no timer 7", set_timer(7, 0));
    refuse_operation(".payload", "the timer carries 2", set_timer(1, 0));
    let test = PayloadTest::new(0, Comparison::Eq, zero);
    let cancel = Operation::CancelTimer { timer: 0, tests: vec![test] };
    refuse_operation(".tests[0].value", "no value of this timer", cancel);
    let shift = Operation::MoveTimer { timer: 7, delay: zero, tests: Vec::new() };
    refuse_operation(".timer", "no timer 7", shift);
    let wide = |comparison, bits| PayloadTest { bits, ..PayloadTest::new(0, comparison, zero) };
    for (test, expected) in [(wide(Comparison::SeqLt, 20), "20 bits"), (wide(Comparison::Lt, 16), "16 bits")] {
        let shift = Operation::MoveTimer { timer: 1, delay: zero, tests: vec![test] };
        refuse_operation(".tests[0].bits", expected, shift);
    }
    let ask = |what, value, kind| Operation::Query {
        register: 0,
        query: Query::Timer { timer: 1, what, value, kind, tests: Vec::new() },
    };
    use RegisterType::{I64, Seq32};
    refuse_operation(".query.value", "no value of this timer", ask(TimerQuery::Greatest, 2, I64));
    refuse_operation(".query.value", "not asked for", ask(TimerQuery::Count, 1, I64));
    refuse_operation(".query.kind", "not asked for", ask(TimerQuery::First, 1, Seq32));
    refuse_operation(".notice", "no notice", Operation::Notify { notice: 1, value });
    refuse_operation(".point", "no debug point", Operation::Snapshot { point: 1 });
}

fn run(block: u16) -> Operation {
    Operation::Run { block }
}

#[test]
fn blocks() {
    let with = |image: &mut Image, operations: Vec<Operation>| image.blocks.push(Block { operations });
    // Row 7 is of a timer with two values, row 8 of an event with one; register 2 is a scratch one.
    let mut image = rich();
    with(&mut image, vec![notify(Operand::Event(0))]);
    with(&mut image, vec![set(2, Operand::Event(2))]);
    image.rows[7].operations.push(run(0));
    image.rows[8].operations.extend([run(0), run(0)]);
    image.preparations[0].operations.push(run(1));
    assert_eq!(findings(image.clone()), [""; 0]);
    image.seal();
    assert!(image.features.contains(&Feature::Blocks));
    refuse("rows[8].operations[1].block", "no block 1", |image| {
        with(image, Vec::new());
        image.rows[8].operations.push(run(1));
    });
    refuse("rows[8].operations[1].block", "no value of this event 1", |image| {
        with(image, vec![notify(Operand::Event(1))]);
        image.rows[7].operations.push(run(0));
        image.rows[8].operations.push(run(0));
    });
    refuse("blocks[0].operations[0].value", "no value of this event 255", |image| {
        with(image, vec![notify(Operand::Event(255))]);
    });
    refuse("blocks[1].operations[0]", "a block that runs a block", |image| {
        with(image, Vec::new());
        with(image, vec![run(0)]);
    });
    for operation in [set(0, constant(1)), Operation::DeleteInstance] {
        refuse("preparations[0].operations[2].block", "does more in a preparation", |image| {
            with(image, vec![operation]);
            image.preparations[0].operations.push(run(0));
        });
    }
    refuse("rows[8]", "`hash` is read before it is written", |image| {
        with(image, vec![notify(Operand::Register(2))]);
        image.rows[8].operations.push(run(0));
    });
    refuse("rows[8].operations", "1025 is too many", |image| {
        with(image, vec![Operation::DeleteInstance; 512]);
        image.rows[8].operations = vec![run(0), Operation::DeleteInstance, run(0)];
    });
    refuse("blocks[0].operations", "1025 is too many", |image| {
        with(image, vec![Operation::DeleteInstance; 1_025]);
    });
    refuse("rows", "1048577 operations, blocks written out", |image| {
        image.preparations.clear();
        with(image, vec![Operation::DeleteInstance; 1_024]);
        image.rows = vec![row(0, Event::Packet, vec![run(0)]); 1_024];
        image.rows.push(row(0, Event::Packet, vec![Operation::DeleteInstance]));
    });
    refuse("rows", "262145 operations", |image| {
        image.preparations.clear();
        image.rows = Vec::new();
        image.blocks = vec![Block { operations: vec![Operation::DeleteInstance; 1_024] }; 256];
        with(image, vec![Operation::DeleteInstance]);
    });
    refuse("blocks", "65536 is too many", |image| image.blocks = vec![Block { operations: Vec::new() }; 65_536]);
}

#[test]
fn what_rows_share_stands_once() {
    let mut image = rich();
    let long = image.rows[0].operations.clone();
    for (place, operations) in [(4, &long[..]), (9, &long[..]), (10, &long[..2]), (11, &long[..2])] {
        image.rows[place].operations = operations.to_vec();
    }
    let plain = image.clone();
    image.share_operations();
    assert_eq!(image.blocks, [Block { operations: long }], "two operations twice take as many as in a block");
    for (place, row) in image.rows.iter().enumerate() {
        let shares = [0, 4, 9].contains(&place);
        assert_eq!(row.operations == [run(0)], shares, "row {place}");
        assert!(image.written_out(&row.operations).eq(&plain.rows[place].operations), "row {place}");
    }
    assert_eq!(image.operation_count(), plain.operation_count() - 2 * plain.rows[0].operations.len() + 3);
    assert_eq!((image.worst_case(), image.worst_case_text()), (plain.worst_case(), plain.worst_case_text()));
    assert_eq!(profile::FPGA.exceeded(&image), profile::FPGA.exceeded(&plain));
    let again = image.clone();
    image.share_operations();
    assert_eq!(image, again, "there is no more to share");
}

fn field(packet: PacketRef, field: u16) -> Operand {
    Operand::Field { packet, field }
}

#[test]
fn exits_lead_nowhere() {
    refuse("rows[6].next", "while state 1 is left", |image| image.rows[6].next = Some(0));
    refuse("rows[13].next", "while state 1 is left", |image| {
        image.rows.push(Row { next: Some(0), ..row(1, Event::Internal(1), vec![]) });
    });
}

#[test]
fn entering_ends() {
    refuse("rows", "`busy` -> `busy`", |image| image.rows[4].next = Some(1));
    refuse("rows", "`busy` -> `done` -> `busy`", |image| {
        image.rows[4].raise = Some(0);
        image.rows.push(Row { next: Some(2), ..row(1, Event::Internal(0), vec![]) });
        image.rows.push(Row { next: Some(1), ..row(2, Event::Enter, vec![]) });
    });
}

#[test]
fn all_errors_are_told_up_to_a_hundred() {
    let mut image = rich();
    image.rows = vec![Row { next: Some(7), ..row(9, Event::Packet, vec![]) }; 80];
    image.seal();
    let Err(ImageError::Invalid(found)) = image.verify() else { panic!("the image is wrong") };
    assert_eq!((found.list.len(), found.more), (MAX_FINDINGS, 60));
    assert!(found.to_string().ends_with("and 60 more"));
}

#[test]
fn profiles_say_what_is_too_much() {
    let mut image = rich();
    assert_eq!(profile::FPGA.exceeded(&image), []);
    image.rows[0].operations = vec![Operation::DeleteInstance; 20];
    image.registers.extend((0..14).map(|number| register(&format!("r{number}"))));
    let texts: Vec<String> = profile::FPGA.exceeded(&image).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "registers: 18 registers (of which 1 scratch), 2 more than the 16 of the profile",
            "rows[0].operations: 20 operations, 4 more than the 16 of the profile",
        ]
    );
    let row = &profile::FPGA.exceeded(&image)[1];
    assert_eq!(row.line, image.rows[0].line);
    image.blocks = vec![Block { operations: image.rows[0].operations.clone() }; 65];
    image.rows[0].operations = vec![run(64)];
    let shared: Vec<String> = profile::FPGA.exceeded(&image).iter().map(ToString::to_string).collect();
    assert_eq!(
        shared,
        [&texts[..1], &["blocks: 65 blocks, 1 more than the 64 of the profile".into()], &texts[1..]].concat()
    );
    let row = &profile::FPGA.exceeded(&image)[2];
    assert!(row.at.starts_with("state ") && row.at.ends_with("operation 17 is `delete_instance`"), "{}", row.at);
    assert_eq!(profile::SOFTWARE.exceeded(&image), []);
    assert_eq!(profile::Profile::named("fpga"), Some(profile::FPGA));
}

#[test]
fn an_event_that_takes_too_long_is_too_much() {
    let mut image = machine();
    let raising =
        |event, raised| Row { raise: Some(raised), line: 7, ..row(0, event, vec![Operation::DeleteInstance; 16]) };
    image.rows = vec![raising(Event::Packet, 0)];
    image.rows.extend((0..4).map(|event| raising(Event::Internal(event), (event + 1) % 4)));
    // 1 + 62 rounds of 4 rows, and one behind: 16 + 63 * 64 + 16.
    image.rows.push(row(0, Event::Internal(4), vec![Operation::DeleteInstance; 16]));
    image.repeats = vec![Repeat { state: 0, event: 0, most: 62, then: 4 }];
    assert_eq!(image.worst_case(), Some(WorstCase { state: 0, event: Event::Packet, operations: 4_064 }));
    assert_eq!(profile::FPGA.exceeded(&image), []);
    image.repeats[0].most = 63;
    let found = profile::FPGA.exceeded(&image);
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    let text =
        "rows: 4128 operations of an event at worst, with all rounds of repeats, 32 more than the 4096 of the profile";
    assert_eq!(texts, [text]);
    assert!(found[0].line == 7 && found[0].at.ends_with(", packet"), "{:?}", found[0]);
    assert_eq!(profile::SOFTWARE.exceeded(&image), []);
}

#[test]
fn the_schema_knows_the_document() {
    let schema = schema();
    let members = schema["properties"].as_object().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&rich().to_json()).unwrap();
    for member in document.as_object().unwrap().keys() {
        assert!(members.contains_key(member), "{member}");
    }
}
