//! The program as P4_16: for v1model, and what [`crate::tna`] writes alike.

use crate::p4runtime::Numbers;
use crate::program::*;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The program for the architecture v1model.
pub fn v1model(program: &Program) -> String {
    let mut text = String::from("// Written by `weft subs compile`.\n#include <core.p4>\n#include <v1model.p4>\n");
    types(program, &mut text);
    text.push_str(
        "\nparser SwitchParser(packet_in packet, out headers_t hdr, inout meta_t meta,\n        \
         inout standard_metadata_t standard_metadata) {\n",
    );
    states(program, &place, &mut text);
    text.push_str("}\n");
    text.push_str("\ncontrol SwitchVerify(inout headers_t hdr, inout meta_t meta) {\n    apply {\n    }\n}\n");
    let numbers = Numbers::new(program);
    for (index, (name, control)) in program.controls().into_iter().enumerate() {
        let _ = writeln!(
            text,
            "\ncontrol {name}(inout headers_t hdr, inout meta_t meta,\n        \
             inout standard_metadata_t standard_metadata) {{"
        );
        if index == 0 {
            for register in &program.registers {
                let _ = writeln!(text, "    register<bit<{}>>(1) {};", register.width, register.name);
            }
        }
        let number = |id: u32| format!("@id({id:#010x}) ");
        actions(control, &step, &|action| number(numbers.action(name, action)), &mut text);
        tables(control, &place, &|table| number(numbers.table(name, table)), &mut text);
        text.push_str("    apply {\n");
        nodes(&control.nodes, 2, &place, &mut text);
        text.push_str("    }\n}\n");
    }
    checksum(program, &mut text);
    text.push_str("\ncontrol SwitchDeparser(packet_out packet, in headers_t hdr) {\n    apply {\n");
    for header in &program.headers {
        let _ = writeln!(text, "        packet.emit(hdr.{});", header.name);
    }
    text.push_str(
        "    }\n}\n\nV1Switch(SwitchParser(), SwitchVerify(), SwitchIngress(), SwitchEgress(), \
         SwitchUpdate(),\n        SwitchDeparser()) main;\n",
    );
    text
}

/// Where a field is, in the architecture's words.
pub(super) type Places<'a> = &'a dyn Fn(&Place) -> String;

/// Types of headers, `headers_t` and `meta_t`.
pub(super) fn types(program: &Program, text: &mut String) {
    let mut written = BTreeSet::new();
    for header in &program.headers {
        if !written.insert(&header.kind) {
            continue;
        }
        let _ = writeln!(text, "\nheader {} {{", header.kind);
        if header.variable > 0 {
            let _ = writeln!(text, "    varbit<{}> data;", header.variable);
        }
        for (name, width) in &header.fields {
            let _ = writeln!(text, "    bit<{width}> {name};");
        }
        text.push_str("}\n");
    }
    if !program.bridge.is_empty() {
        text.push_str("\nheader bridge_t {\n");
        for (name, width) in &program.bridge {
            let _ = writeln!(text, "    bit<{width}> {name};");
        }
        text.push_str("}\n");
    }
    text.push_str("\nstruct headers_t {\n");
    if !program.bridge.is_empty() {
        let _ = writeln!(text, "    bridge_t {BRIDGE};");
    }
    for header in &program.headers {
        let _ = writeln!(text, "    {} {};", header.kind, header.name);
    }
    text.push_str("}\n\nstruct meta_t {\n");
    for (name, width) in &program.metadata {
        let _ = writeln!(text, "    bit<{width}> {name};");
    }
    text.push_str("}\n");
}

/// The parser's states.
pub(super) fn states(program: &Program, place: Places<'_>, text: &mut String) {
    for state in &program.states {
        let _ = writeln!(text, "    state {} {{", state.name);
        for extract in &state.extracts {
            let _ = match extract {
                Extract::Header(name) => writeln!(text, "        packet.extract(hdr.{name});"),
                Extract::Variable(name, bits) => {
                    writeln!(text, "        packet.extract(hdr.{name}, {});", expression(bits, &[], place))
                }
            };
        }
        for (field, value) in &state.sets {
            let _ = writeln!(text, "        {} = {};", place(field), expression(value, &[], place));
        }
        if let Some(counter) = state.counter {
            let _ = match counter {
                Counter::Set(count) => writeln!(text, "        counter.set(8w{count});"),
                Counter::Down => writeln!(text, "        counter.decrement(8w1);"),
            };
        }
        if state.select.is_empty() {
            let _ = writeln!(text, "        transition {};\n    }}", state.otherwise);
            continue;
        }
        let keys: Vec<String> = state
            .select
            .iter()
            .map(|select| match select {
                Select::Field(field, _) => place(field),
                Select::Done => "counter.is_zero()".to_owned(),
                Select::Ahead(offset, width) => {
                    let all = offset + u32::from(*width);
                    format!("packet.lookahead<bit<{all}>>()[{}:0]", width - 1)
                }
            })
            .collect();
        let _ = writeln!(text, "        transition select({}) {{", keys.join(", "));
        for (values, next) in &state.cases {
            let values: Vec<String> = state
                .select
                .iter()
                .zip(values)
                .map(|(select, (value, mask))| match select {
                    Select::Done => (*value == 1).to_string(),
                    _ => case(select.width(), *value, *mask),
                })
                .collect();
            let values = if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) };
            let _ = writeln!(text, "            {values}: {next};");
        }
        let _ = writeln!(text, "            default: {};\n        }}\n    }}", state.otherwise);
    }
}

fn case(width: u16, value: u128, mask: u128) -> String {
    let all = u128::MAX >> (128 - width.clamp(1, 128));
    match mask & all {
        0 => "_".to_owned(),
        mask if mask == all => format!("{:#x}", value & all),
        mask => format!("{:#x} &&& {mask:#x}", value & mask),
    }
}

/// Where a field is in v1model.
fn place(place: &Place) -> String {
    match place.header.as_str() {
        META | STANDARD => format!("{}.{}", place.header, place.field),
        header => format!("hdr.{header}.{}", place.field),
    }
}

/// A value, with the names of an action's parameters.
pub(super) fn expression(value: &Expression, parameters: &[(String, u16)], place: Places<'_>) -> String {
    let inner = |value| expression(value, parameters, place);
    match value {
        Expression::Field(field) => place(field),
        Expression::Valid(header) => format!("hdr.{header}.isValid()"),
        Expression::Number(value, width) => format!("{width}w{value:#x}"),
        Expression::Parameter(index) => parameters.get(*index).map_or(String::new(), |(name, _)| name.clone()),
        // The parser's error is a name, not a number.
        Expression::Of(operator, left, right) if is_error(left) && **right == Expression::Number(0, 32) => {
            format!("({} {operator} error.NoError)", inner(left))
        }
        Expression::Of(operator, left, right) => format!("({} {operator} {})", inner(left), inner(right)),
        Expression::Bits(width, value) => format!("(bit<{width}>){}", inner(value)),
        Expression::Slice(low, width, value) => format!("{}[{}:{low}]", inner(value), low + width - 1),
        Expression::Choice(test, yes, no) => format!("({} ? {} : {})", inner(test), inner(yes), inner(no)),
    }
}

fn is_error(value: &Expression) -> bool {
    matches!(value, Expression::Field(field) if *field == Place::new(STANDARD, "parser_error"))
}

/// A step of an action.
fn step(step: &Step, parameters: &[(String, u16)]) -> String {
    let value = |value| expression(value, parameters, &place);
    match step {
        Step::Set(to, it) => format!("{} = {};", place(to), value(it)),
        Step::Remove(header) => format!("hdr.{header}.setInvalid();"),
        Step::Drop => "mark_to_drop(standard_metadata);".to_owned(),
        Step::Read(to, register) => format!("{register}.read({}, 0);", place(to)),
        Step::Write(register, it) => format!("{register}.write(0, {});", value(it)),
        // Not of this architecture.
        Step::Update(..) => String::new(),
    }
}

/// How an architecture writes a step, with the names of the action's parameters.
pub(super) type Steps<'a> = &'a dyn Fn(&Step, &[(String, u16)]) -> String;

/// What an architecture writes in front of the declaration of a name.
pub(super) type Annotations<'a> = &'a dyn Fn(&str) -> String;

/// A control's actions.
pub(super) fn actions(control: &Control, step: Steps<'_>, annotation: Annotations<'_>, text: &mut String) {
    for action in &control.actions {
        let parameters: Vec<String> =
            action.parameters.iter().map(|(name, width)| format!("bit<{width}> {name}")).collect();
        let (name, purpose) = (&action.name, action.purpose);
        let (before, parameters) = (annotation(name), parameters.join(", "));
        let _ = writeln!(text, "    // {purpose}\n    {before}action {name}({parameters}) {{");
        for it in &action.steps {
            let _ = writeln!(text, "        {}", step(it, &action.parameters));
        }
        text.push_str("    }\n");
    }
}

/// A control's tables.
pub(super) fn tables(control: &Control, place: Places<'_>, annotation: Annotations<'_>, text: &mut String) {
    for table in &control.tables {
        let _ = writeln!(text, "    {}table {} {{", annotation(&table.name), table.name);
        if !table.keys.is_empty() {
            text.push_str("        key = {\n");
            for key in &table.keys {
                let value = expression(&key.value, &[], place);
                let _ = writeln!(text, "            {value}: {} @name(\"{}\");", key.kind.name(), key.name);
            }
            text.push_str("        }\n");
        }
        text.push_str("        actions = {\n");
        for action in &table.actions {
            let _ = writeln!(text, "            {action};");
        }
        let arguments: Vec<String> = table.default.1.iter().map(|value| format!("{value:#x}")).collect();
        let _ = writeln!(text, "        }}\n        default_action = {}({});", table.default.0, arguments.join(", "));
        if !table.keys.is_empty() {
            let _ = writeln!(text, "        size = {};", table.size());
        }
        text.push_str("    }\n");
    }
}

/// What a control does.
pub(super) fn nodes(all: &[Node], depth: usize, place: Places<'_>, text: &mut String) {
    let indent = "    ".repeat(depth);
    for node in all {
        let _ = match node {
            Node::Apply(table) => writeln!(text, "{indent}{table}.apply();"),
            Node::ApplyOr(table, others) => {
                let _ = writeln!(text, "{indent}if (!{table}.apply().hit) {{");
                nodes(others, depth + 1, place, text);
                writeln!(text, "{indent}}}")
            }
            Node::Do(action) => writeln!(text, "{indent}{action}();"),
            Node::If(test, yes, no) => {
                let test = expression(test, &[], place);
                let test = test.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(&test).to_owned();
                let _ = writeln!(text, "{indent}if ({test}) {{");
                nodes(yes, depth + 1, place, text);
                if !no.is_empty() {
                    let _ = writeln!(text, "{indent}}} else {{");
                    nodes(no, depth + 1, place, text);
                }
                writeln!(text, "{indent}}}")
            }
        };
    }
}

fn checksum(program: &Program, text: &mut String) {
    text.push_str("\ncontrol SwitchUpdate(inout headers_t hdr, inout meta_t meta) {\n    apply {\n");
    let ipv4 = program.headers.iter().find(|header| header.name == "ipv4");
    if let (Some(ipv4), Some(when)) = (ipv4, &program.checksum_when) {
        let _ = writeln!(
            text,
            "        update_checksum(hdr.ipv4.isValid() && meta.{when} == 1,\n            {{ {} }},\n            \
             hdr.ipv4.checksum, HashAlgorithm.csum16);",
            checksum_fields(ipv4)
        );
    }
    text.push_str("    }\n}\n");
}

/// The fields that the checksum of IPv4 is over.
pub(super) fn checksum_fields(ipv4: &Header) -> String {
    let fields = ipv4.fields.iter().filter(|(name, _)| name != "checksum");
    fields.map(|(name, _)| format!("hdr.ipv4.{name}")).collect::<Vec<_>>().join(", ")
}
