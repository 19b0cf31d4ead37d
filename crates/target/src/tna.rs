//! The program for the Tofino Native Architecture.
//!
//! Ingress and egress have a parser each, which take the same headers. What egress needs to know of ingress goes in front
//! of the packet in a header of its own, [`BRIDGE`]. Windows are registers of a pair of 32 bits: the window's number, and
//! the value.

use crate::p4;
use crate::program::*;
use std::fmt::Write as _;
use weftwire_subscribe::rules::Function;

/// The P4 text.
pub fn text(program: &Program) -> String {
    let mut text = String::from(
        "// Written by `weft subs compile`.\n#include <core.p4>\n#if __TARGET_TOFINO__ == 2\n#include <t2na.p4>\n\
         #else\n#include <tna.p4>\n#endif\n",
    );
    p4::types(program, &mut text);
    if !program.windows.is_empty() {
        text.push_str("\nstruct window_t {\n    bit<32> number;\n    bit<32> value;\n}\n");
    }
    ingress(program, &mut text);
    // Without batches copies leave as they came in: egress then only knows what ingress tells it, if it is asked at all.
    if !program.egress_parses {
        text.push_str("\nstruct empty_t {\n}\n");
        if !program.bridge.is_empty() {
            let _ = writeln!(text, "\nstruct bridged_t {{\n    bridge_t {BRIDGE};\n}}");
        }
    }
    egress(program, &mut text);
    text.push_str(
        "\nPipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;\
         \n\nSwitch(pipe) main;\n",
    );
    text
}

const INGRESS: &str = "inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig_intr_md,\n        \
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,\n        \
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,\n        \
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md";

fn egress_parameters(headers: &str, meta: &str) -> String {
    format!(
        "inout {headers} hdr, inout {meta} meta, in egress_intrinsic_metadata_t eg_intr_md,\n        \
         in egress_intrinsic_metadata_from_parser_t eg_prsr_md,\n        \
         inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,\n        \
         inout egress_intrinsic_metadata_for_output_port_t eg_oport_md"
    )
}

/// The states, the first of which takes what the switch puts in front of packets.
fn parser(program: &Program, first: &str, place: p4::Places<'_>, text: &mut String) {
    let counts = program.states.iter().any(|state| state.counter.is_some());
    if counts {
        text.push_str("    ParserCounter() counter;\n");
    }
    let mut states = String::new();
    p4::states(program, place, &mut states);
    // The first line opens the state `start`.
    let (open, rest) = states.split_once('\n').unwrap_or_default();
    let _ = write!(text, "{open}\n{first}{rest}}}\n");
}

fn ingress(program: &Program, text: &mut String) {
    text.push_str(
        "\nparser IngressParser(packet_in packet, out headers_t hdr, out meta_t meta,\n        \
         out ingress_intrinsic_metadata_t ig_intr_md) {\n",
    );
    let mut first = "        packet.extract(ig_intr_md);\n        packet.advance(PORT_METADATA_SIZE);\n".to_owned();
    if !program.bridge.is_empty() {
        let _ = writeln!(first, "        hdr.{BRIDGE}.setValid();");
    }
    parser(program, &first, &ingress_place, text);
    let _ = writeln!(text, "\ncontrol Ingress({INGRESS}) {{");
    for window in &program.windows {
        self::window(window, text);
    }
    p4::actions(&program.ingress, &|step, parameters| self::step(step, parameters, true), &no_annotation, text);
    p4::tables(&program.ingress, &ingress_place, &no_annotation, text);
    text.push_str("    apply {\n");
    p4::nodes(&program.ingress.nodes, 2, &ingress_place, text);
    if program.bridge.is_empty() {
        text.push_str("        ig_tm_md.bypass_egress = 1w1;\n");
    }
    text.push_str("    }\n}\n");
    text.push_str(
        "\ncontrol IngressDeparser(packet_out packet, inout headers_t hdr, in meta_t meta,\n        \
         in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {\n    apply {\n        packet.emit(hdr);\n    }\n}\n",
    );
}

fn egress(program: &Program, text: &mut String) {
    let (headers, meta) = match (program.egress_parses, program.bridge.is_empty()) {
        (true, _) => ("headers_t", "meta_t"),
        (false, false) => ("bridged_t", "empty_t"),
        (false, true) => ("empty_t", "empty_t"),
    };
    let _ = writeln!(
        text,
        "\nparser EgressParser(packet_in packet, out {headers} hdr, out {meta} meta,\n        \
         out egress_intrinsic_metadata_t eg_intr_md) {{"
    );
    let mut first = "        packet.extract(eg_intr_md);\n".to_owned();
    if !program.bridge.is_empty() {
        let _ = writeln!(first, "        packet.extract(hdr.{BRIDGE});");
    }
    if program.egress_parses {
        // The bridge says what ingress found, and is not found again.
        let mut known = program.clone();
        known.states.iter_mut().for_each(|state| state.sets.retain(|(place, _)| place.header != BRIDGE));
        parser(&known, &first, &egress_place, text);
    } else {
        let _ = writeln!(text, "    state start {{\n{first}        transition accept;\n    }}\n}}");
    }
    let _ = writeln!(text, "\ncontrol Egress({}) {{", egress_parameters(headers, meta));
    p4::actions(&program.egress, &|step, parameters| self::step(step, parameters, false), &no_annotation, text);
    p4::tables(&program.egress, &egress_place, &no_annotation, text);
    text.push_str("    apply {\n");
    p4::nodes(&program.egress.nodes, 2, &egress_place, text);
    text.push_str("    }\n}\n");
    let _ = writeln!(
        text,
        "\ncontrol EgressDeparser(packet_out packet, inout {headers} hdr, in {meta} meta,\n        \
         in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {{"
    );
    let ipv4 = program.headers.iter().find(|header| header.name == "ipv4").filter(|_| program.egress_parses);
    if ipv4.is_some() {
        text.push_str("    Checksum() ipv4_checksum;\n");
    }
    text.push_str("    apply {\n");
    if let (Some(ipv4), Some(when)) = (ipv4, &program.checksum_when) {
        let _ = writeln!(
            text,
            "        if (meta.{when} == 1w1) {{\n            hdr.ipv4.checksum = ipv4_checksum.update({{ {} }});\n        }}",
            p4::checksum_fields(ipv4)
        );
    }
    // All but the bridge; what was not parsed follows by itself.
    for header in program.headers.iter().filter(|_| program.egress_parses) {
        let _ = writeln!(text, "        packet.emit(hdr.{});", header.name);
    }
    text.push_str("    }\n}\n");
}

/// Names stand for themselves here: bfrt knows things by them.
fn no_annotation(_: &str) -> String {
    String::new()
}

/// A register and the action that takes a message into it.
fn window(window: &WindowRegister, text: &mut String) {
    let name = &window.name;
    let number = ingress_place(&window.number);
    let value = window.value.as_ref().map_or("32w1".to_owned(), ingress_place);
    let fresh = format!("window.number != {number}");
    let (test, first, more) = match window.function {
        Function::Min => (format!("{fresh} || {value} < window.value"), value, None),
        Function::Max => (format!("{fresh} || {value} > window.value"), value, None),
        // Sums and counts end at the greatest value.
        _ => (fresh, value.clone(), Some(format!("window.value |+| {value}"))),
    };
    // What it starts with is right for the window 0, too: the value of no messages.
    let none = if window.function == Function::Min { "0xffffffff" } else { "0" };
    let _ = writeln!(text, "    Register<window_t, bit<1>>(1, {{ 0, {none} }}) {name};");
    let _ = writeln!(text, "    RegisterAction<window_t, bit<1>, bit<32>>({name}) into_{name} = {{");
    text.push_str("        void apply(inout window_t window, out bit<32> result) {\n");
    let _ = writeln!(text, "            if ({test}) {{\n                window.value = {first};");
    if let Some(more) = more {
        let _ = writeln!(text, "            }} else {{\n                window.value = {more};");
    }
    let _ = writeln!(text, "            }}\n            window.number = {number};\n            result = window.value;");
    text.push_str("        }\n    };\n");
}

fn step(step: &Step, parameters: &[(String, u16)], ingress: bool) -> String {
    let place = if ingress { ingress_place } else { egress_place };
    match step {
        Step::Set(to, it) => format!("{} = {};", place(to), p4::expression(it, parameters, &place)),
        Step::Remove(header) => format!("hdr.{header}.setInvalid();"),
        Step::Drop if ingress => "ig_dprsr_md.drop_ctl = 3w1;".to_owned(),
        Step::Drop => "eg_dprsr_md.drop_ctl = 3w1;".to_owned(),
        Step::Update(to, window) => format!("{} = into_{window}.execute(1w0);", place(to)),
        // Not of this architecture.
        Step::Read(..) | Step::Write(..) => String::new(),
    }
}

fn ingress_place(place: &Place) -> String {
    match (place.header.as_str(), place.field.as_str()) {
        (META, field) => format!("meta.{field}"),
        (STANDARD, "egress_spec") => "ig_tm_md.ucast_egress_port".to_owned(),
        (STANDARD, "mcast_grp") => "ig_tm_md.mcast_grp_a".to_owned(),
        (STANDARD, "ingress_global_timestamp") => "ig_prsr_md.global_tstamp".to_owned(),
        (STANDARD, field) => format!("ig_intr_md.{field}"),
        (header, field) => format!("hdr.{header}.{field}"),
    }
}

fn egress_place(place: &Place) -> String {
    match (place.header.as_str(), place.field.as_str()) {
        (META, field) => format!("meta.{field}"),
        (STANDARD, field) => format!("eg_intr_md.{field}"),
        (header, field) => format!("hdr.{header}.{field}"),
    }
}
