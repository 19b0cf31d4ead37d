//! The program as bmv2's JSON, which `simple_switch` runs without a compiler in between.

use crate::program::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the layout that this follows.
const VERSION: [u32; 2] = [2, 18];

/// Fields of bmv2's own metadata with their widths.
const STANDARD_FIELDS: &[(&str, u16)] = &[
    ("ingress_port", 9),
    ("egress_spec", 9),
    ("egress_port", 9),
    ("instance_type", 32),
    ("packet_length", 32),
    ("enq_timestamp", 32),
    ("enq_qdepth", 19),
    ("deq_timedelta", 32),
    ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48),
    ("egress_global_timestamp", 48),
    ("mcast_grp", 16),
    ("egress_rid", 16),
    ("checksum_error", 1),
    ("parser_error", 32),
    ("priority", 3),
    ("_padding", 3),
];

/// What bmv2 knows by other names. Without those of multicast, groups are ignored and packets go to port 0.
const ALIASES: &[(&str, &str)] = &[
    ("queueing_metadata.enq_timestamp", "enq_timestamp"),
    ("queueing_metadata.enq_qdepth", "enq_qdepth"),
    ("queueing_metadata.deq_timedelta", "deq_timedelta"),
    ("queueing_metadata.deq_qdepth", "deq_qdepth"),
    ("intrinsic_metadata.ingress_global_timestamp", "ingress_global_timestamp"),
    ("intrinsic_metadata.egress_global_timestamp", "egress_global_timestamp"),
    ("intrinsic_metadata.mcast_grp", "mcast_grp"),
    ("intrinsic_metadata.egress_rid", "egress_rid"),
    ("intrinsic_metadata.priority", "priority"),
];

/// The document's text.
pub fn json(program: &Program) -> String {
    let document = document(program);
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// The document.
pub fn document(program: &Program) -> Value {
    let mut types: BTreeMap<&str, &Header> = BTreeMap::new();
    for header in &program.headers {
        types.insert(&header.kind, header);
    }
    let mut header_types = vec![
        header_type(0, "standard_metadata_t", STANDARD_FIELDS.iter().map(|(name, width)| (*name, *width))),
        header_type(1, "meta_t", program.metadata.iter().map(|(name, width)| (name.as_str(), *width))),
    ];
    for (index, (kind, header)) in types.iter().enumerate() {
        let mut it = header_type(index + 2, kind, header.fields.iter().map(|(name, width)| (name.as_str(), *width)));
        if header.variable > 0 {
            it["fields"] = json!([["data", "*"]]);
            it["max_length"] = json!(header.variable / 8);
        }
        header_types.push(it);
    }
    let instance = |id: usize, name: &str, kind: &str, metadata: bool| json!({"name": name, "id": id, "header_type": kind, "metadata": metadata, "pi_omit": true});
    let mut headers = vec![instance(0, STANDARD, "standard_metadata_t", true), instance(1, META, "meta_t", true)];
    for (index, header) in program.headers.iter().enumerate() {
        headers.push(instance(index + 2, &header.name, &header.kind, false));
    }
    let mut ids = Ids::default();
    let [(ingress_name, ingress), (egress_name, egress)] = program.controls();
    let ingress = Pipeline::new(ingress_name, ingress, &mut ids).write("ingress", 0);
    let egress = Pipeline::new(egress_name, egress, &mut ids).write("egress", 1);
    let order: Vec<&str> = program.headers.iter().map(|header| header.name.as_str()).collect();
    let registers: Vec<Value> = program
        .registers
        .iter()
        .enumerate()
        .map(|(id, register)| json!({"name": format!("{ingress_name}.{}", register.name), "id": id, "size": 1, "bitwidth": register.width}))
        .collect();
    let (calculations, checksums) = checksums(program);
    let aliases: Vec<Value> = ALIASES.iter().map(|(alias, field)| json!([alias, [STANDARD, field]])).collect();
    json!({
        "__meta__": {"version": VERSION, "compiler": "weftwire"},
        "program": "switch",
        "header_types": header_types,
        "headers": headers,
        "header_stacks": [],
        "header_union_types": [],
        "header_unions": [],
        "header_union_stacks": [],
        "field_lists": [],
        "errors": [["NoError", 0], ["PacketTooShort", 1], ["NoMatch", 2], ["StackOutOfBounds", 3],
            ["HeaderTooShort", 4], ["ParserTimeout", 5], ["ParserInvalidArgument", 6]],
        "enums": [],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start",
            "parse_states": program.states.iter().enumerate().map(|(id, it)| state(id, it)).collect::<Vec<_>>()}],
        "parse_vsets": [],
        "deparsers": [{"name": "deparser", "id": 0, "order": order}],
        "meter_arrays": [],
        "counter_arrays": [],
        "register_arrays": registers,
        "calculations": calculations,
        "learn_lists": [],
        "actions": ids.actions,
        "pipelines": [ingress, egress],
        "checksums": checksums,
        "force_arith": [],
        "extern_instances": [],
        "field_aliases": aliases,
    })
}

/// bmv2's types are whole bytes long.
fn header_type<'a>(id: usize, name: &str, fields: impl Iterator<Item = (&'a str, u16)>) -> Value {
    let mut all = Vec::new();
    let mut length = 0;
    for (name, width) in fields {
        all.push(json!([name, width, false]));
        length += u32::from(width);
    }
    if length % 8 != 0 {
        all.push(json!(["_padding_to_bytes", 8 - length % 8, false]));
    }
    json!({"name": name, "id": id, "fields": all})
}

fn place(place: &Place) -> Value {
    json!([place.header, place.field])
}

fn hex(value: u128) -> Value {
    json!({"type": "hexstr", "value": format!("{value:#x}")})
}

/// A value within an expression.
fn inner(value: &Expression) -> Value {
    match value {
        Expression::Field(field) => json!({"type": "field", "value": place(field)}),
        Expression::Valid(header) => json!({"type": "expression", "value":
            {"op": "d2b", "left": null, "right": {"type": "field", "value": [header, "$valid$"]}}}),
        Expression::Number(value, _) => hex(*value),
        Expression::Parameter(index) => json!({"type": "local", "value": index}),
        Expression::Of(operator, left, right) => {
            let operator = match *operator {
                "&&" => "and",
                "||" => "or",
                other => other,
            };
            json!({"type": "expression", "value": {"op": operator, "left": inner(left), "right": inner(right)}})
        }
        // bmv2 counts in whole numbers of any size: what a type cuts off in P4 a mask does here.
        Expression::Bits(width, value) => {
            let mask = u128::MAX >> (128 - width.clamp(&1, &128));
            json!({"type": "expression", "value": {"op": "&", "left": inner(value), "right": hex(mask)}})
        }
        Expression::Slice(low, width, value) => {
            let shifted = Expression::Of(">>", value.clone(), Box::new(Expression::Number((*low).into(), 8)));
            inner(&shifted.bits(*width))
        }
        Expression::Choice(test, yes, no) => json!({"type": "expression", "value":
            {"op": "?", "left": inner(yes), "right": inner(no), "cond": inner(test)}}),
    }
}

/// A value as the parameter of a primitive.
fn parameter(value: &Expression) -> Value {
    match value {
        Expression::Parameter(index) => json!({"type": "runtime_data", "value": index}),
        Expression::Field(_) | Expression::Number(..) => inner(value),
        _ => json!({"type": "expression", "value": inner(value)}),
    }
}

fn state(id: usize, state: &State) -> Value {
    let mut operations: Vec<Value> = state
        .extracts
        .iter()
        .map(|extract| match extract {
            Extract::Header(name) => json!({"op": "extract", "parameters": [{"type": "regular", "value": name}]}),
            Extract::Variable(name, bits) => json!({"op": "extract_VL", "parameters":
                [{"type": "regular", "value": name}, {"type": "expression", "value": inner(bits)}]}),
        })
        .collect();
    for (field, value) in &state.sets {
        operations.push(json!({"op": "set", "parameters":
            [{"type": "field", "value": place(field)}, parse_parameter(value)]}));
    }
    let key: Vec<Value> = state
        .select
        .iter()
        .map(|select| match select {
            Select::Field(field, _) => json!({"type": "field", "value": place(field)}),
            Select::Ahead(offset, width) => json!({"type": "lookahead", "value": [offset, width]}),
            // Not of this architecture.
            Select::Done => Value::Null,
        })
        .collect();
    let next = |name: &str| if name == ACCEPT { Value::Null } else { json!(name) };
    let mut transitions: Vec<Value> = state
        .cases
        .iter()
        .map(|(values, to)| {
            let (value, mask, whole) = transition(&state.select, values);
            let mask = if whole { Value::Null } else { json!(mask) };
            json!({"type": "hexstr", "value": value, "mask": mask, "next_state": next(to)})
        })
        .collect();
    transitions.push(json!({"type": "default", "value": null, "mask": null, "next_state": next(&state.otherwise)}));
    json!({"name": state.name, "id": id, "parser_ops": operations, "transition_key": key, "transitions": transitions})
}

fn parse_parameter(value: &Expression) -> Value {
    match value {
        Expression::Field(_) | Expression::Number(..) => inner(value),
        _ => json!({"type": "expression", "value": inner(value)}),
    }
}

/// The values of a transition one behind the other, each in whole bytes; the same of masks; and whether all bits count.
fn transition(select: &[Select], values: &[(u128, u128)]) -> (String, String, bool) {
    let (mut value, mut mask, mut whole) = ("0x".to_owned(), "0x".to_owned(), true);
    for (select, (wanted, bits)) in select.iter().zip(values) {
        let all = u128::MAX >> (128 - select.width().clamp(1, 128));
        let digits = usize::from(select.width().div_ceil(8)) * 2;
        value += &format!("{:0digits$x}", wanted & bits & all);
        mask += &format!("{:0digits$x}", bits & all);
        whole &= bits & all == all;
    }
    (value, mask, whole)
}

/// Numbers of actions and tables, which both pipelines share.
#[derive(Default)]
struct Ids {
    actions: Vec<Value>,
    tables: usize,
    nodes: usize,
}

/// Registers are of the control too.
fn action(id: usize, control: &str, action: &Action) -> Value {
    let full = |name: &str| format!("{control}.{name}");
    let data: Vec<Value> =
        action.parameters.iter().map(|(name, width)| json!({"name": name, "bitwidth": width})).collect();
    let primitives: Vec<Value> = action
        .steps
        .iter()
        .map(|step| {
            let (operation, parameters) = match step {
                Step::Set(to, value) => {
                    ("assign", vec![json!({"type": "field", "value": place(to)}), parameter(value)])
                }
                Step::Remove(header) => ("remove_header", vec![json!({"type": "header", "value": header})]),
                // Not of this architecture.
                Step::Update(..) => ("nop", Vec::new()),
                Step::Drop => ("mark_to_drop", vec![json!({"type": "header", "value": STANDARD})]),
                Step::Read(to, register) => (
                    "register_read",
                    vec![
                        json!({"type": "field", "value": place(to)}),
                        json!({"type": "register_array", "value": full(register)}),
                        hex(0),
                    ],
                ),
                Step::Write(register, value) => (
                    "register_write",
                    vec![json!({"type": "register_array", "value": full(register)}), hex(0), parameter(value)],
                ),
            };
            json!({"op": operation, "parameters": parameters})
        })
        .collect();
    json!({"name": full(&action.name), "id": id, "runtime_data": data, "primitives": primitives})
}

/// A control as tables and conditions that name their followers.
struct Pipeline<'a> {
    name: &'static str,
    control: &'a Control,
    ids: &'a mut Ids,
    /// Numbers of the control's actions.
    actions: BTreeMap<&'a str, usize>,
    tables: Vec<Value>,
    conditions: Vec<Value>,
}

impl<'a> Pipeline<'a> {
    fn new(name: &'static str, control: &'a Control, ids: &'a mut Ids) -> Pipeline<'a> {
        let mut actions = BTreeMap::new();
        for it in &control.actions {
            let id = ids.actions.len();
            actions.insert(it.name.as_str(), id);
            ids.actions.push(action(id, name, it));
        }
        Pipeline { name, control, ids, actions, tables: Vec::new(), conditions: Vec::new() }
    }

    fn write(mut self, name: &str, id: usize) -> Value {
        let control = self.control;
        let first = self.nodes(&control.nodes, Value::Null);
        json!({"name": name, "id": id, "init_table": first, "tables": self.tables, "action_profiles": [],
            "conditionals": self.conditions})
    }

    /// Writes nodes that `next` follows. Returns the name of the first.
    fn nodes(&mut self, nodes: &[Node], next: Value) -> Value {
        nodes.iter().rev().fold(next, |next, node| self.node(node, next))
    }

    fn node(&mut self, node: &Node, next: Value) -> Value {
        match node {
            Node::Apply(name) => self.table(name, next.clone(), next),
            Node::ApplyOr(name, others) => {
                let miss = self.nodes(others, next.clone());
                self.table(name, next, miss)
            }
            Node::Do(name) => {
                self.ids.nodes += 1;
                let table = Table {
                    name: format!("do_{name}_{}", self.ids.nodes),
                    keys: Vec::new(),
                    actions: vec![name.clone()],
                    default: (name.clone(), Vec::new()),
                    entries: Vec::new(),
                };
                self.put(&table, next.clone(), next, true)
            }
            Node::If(test, yes, no) => {
                let yes = self.nodes(yes, next.clone());
                let no = self.nodes(no, next);
                self.ids.nodes += 1;
                let name = format!("if_{}", self.ids.nodes);
                self.conditions.push(json!({"name": name, "id": self.ids.nodes, "expression": inner(test),
                    "true_next": yes, "false_next": no}));
                json!(name)
            }
        }
    }

    fn table(&mut self, name: &str, hit: Value, miss: Value) -> Value {
        let control = self.control;
        match control.tables.iter().find(|table| table.name == name) {
            Some(table) => self.put(table, hit, miss, false),
            None => miss,
        }
    }

    fn put(&mut self, table: &Table, hit: Value, miss: Value, constant: bool) -> Value {
        let keys: Vec<Value> = table
            .keys
            .iter()
            .map(|key| {
                let target = match &key.value {
                    Expression::Valid(header) => json!([header, "$valid$"]),
                    Expression::Field(field) => place(field),
                    _ => Value::Null,
                };
                json!({"match_type": key.kind.name(), "name": key.name, "target": target, "mask": null})
            })
            .collect();
        let id = self.ids.tables;
        self.ids.tables += 1;
        let number = |action: &str| self.actions.get(action).copied();
        let full = |name: &String| format!("{}.{name}", self.name);
        let data: Vec<String> = table.default.1.iter().map(|value| format!("{value:#x}")).collect();
        self.tables.push(json!({
            "name": full(&table.name),
            "id": id,
            "key": keys,
            "match_type": table.kind().name(),
            "type": "simple",
            "max_size": table.size(),
            "with_counters": false,
            "support_timeout": false,
            "direct_meters": null,
            "action_ids": table.actions.iter().filter_map(|name| number(name)).collect::<Vec<_>>(),
            "actions": table.actions.iter().map(full).collect::<Vec<_>>(),
            "base_default_next": miss,
            "next_tables": {"__HIT__": hit, "__MISS__": miss},
            "default_entry": {"action_id": number(&table.default.0), "action_const": constant,
                "action_data": data, "action_entry_const": constant},
        }));
        json!(full(&table.name))
    }
}

/// The IPv4 checksum of packets that were changed.
fn checksums(program: &Program) -> (Value, Value) {
    let ipv4 = program.headers.iter().find(|header| header.name == "ipv4");
    let (Some(ipv4), Some(when)) = (ipv4, &program.checksum_when) else { return (json!([]), json!([])) };
    let fields: Vec<Value> = ipv4
        .fields
        .iter()
        .filter(|(name, _)| name != "checksum")
        .map(|(name, _)| json!({"type": "field", "value": ["ipv4", name]}))
        .collect();
    let changed = Expression::meta(when).of("==", Expression::Number(1, 1));
    let test = Expression::Valid("ipv4".to_owned()).of("&&", changed);
    (
        json!([{"name": "ipv4_checksum", "id": 0, "input": fields, "algo": "csum16"}]),
        json!([{"name": "ipv4_checksum", "id": 0, "type": "generic", "calculation": "ipv4_checksum",
            "target": ["ipv4", "checksum"], "verify": false, "update": true, "if_cond": inner(&test)}]),
    )
}
