//! Packets of several messages: which ports they go to in all, and each copy with only the messages for its port.
//!
//! All is made of steps that Tofino does in one stage: one operation an action and field, and tables where sets of ports are
//! compared.

use crate::parser::{Parsing, field_name, instance};
use crate::pipeline::PortSets;
use crate::program::*;
use weftwire_subscribe::formats::{Batch, Framing, HeaderId};

/// Writes ingress around the tables of the messages, and egress.
pub(super) fn write(
    parsing: &Parsing<'_>,
    header: HeaderId,
    batch: Batch,
    sets: &PortSets,
    body: Vec<Node>,
    program: &mut Program,
) {
    program.keep("too_many".to_owned(), 1);
    let writer = Writer { parsing, header, batch, slots: parsing.targets.messages, sets };
    writer.ingress(body, program);
    writer.egress(program);
    program.egress_parses = true;
}

struct Writer<'a> {
    parsing: &'a Parsing<'a>,
    header: HeaderId,
    batch: Batch,
    slots: usize,
    sets: &'a PortSets,
}

fn meta(name: &str) -> Place {
    Place::new(META, name)
}

fn action(name: &str, purpose: &'static str, steps: Vec<Step>) -> Action {
    Action { name: name.to_owned(), purpose, parameters: Vec::new(), steps }
}

fn when(test: Expression, yes: Vec<Node>) -> Node {
    Node::If(test, yes, Vec::new())
}

impl Writer<'_> {
    fn words(&self) -> std::ops::Range<usize> {
        0..self.sets.words
    }

    fn ingress(&self, body: Vec<Node>, program: &mut Program) {
        let ports = |program: &Program, slot: usize, word: usize| program.kept(&format!("ports_{slot}_{word}"));
        let places = (0..self.slots).flat_map(|slot| self.words().map(move |word| (slot, word)));
        let zero = |word| Expression::Number(0, self.sets.width(word));
        let steps = places.map(|(slot, word)| Step::Set(ports(program, slot, word), zero(word))).collect();
        program.ingress.actions.push(action("clear", "Messages that are not there go nowhere.", steps));
        // The packet goes where any of its messages goes: sets are united two by two.
        let mut known = body;
        let mut open: Vec<Vec<Place>> =
            (0..self.slots).map(|slot| self.words().map(|word| ports(program, slot, word)).collect()).collect();
        for round in 0.. {
            if open.len() < 2 {
                break;
            }
            let mut steps = Vec::new();
            let mut united = Vec::new();
            for (index, pair) in open.chunks(2).enumerate() {
                let [left, right] = pair else {
                    united.extend(pair.iter().cloned());
                    continue;
                };
                let mut both = Vec::new();
                for word in self.words() {
                    let place = meta(&format!("united_{round}_{index}_{word}"));
                    program.metadata.push((place.field.clone(), self.sets.width(word)));
                    let [left, right] = [left, right].map(|set| Expression::Field(set[word].clone()));
                    steps.push(Step::Set(place.clone(), left.of("|", right)));
                    both.push(place);
                }
                united.push(both);
            }
            let name = format!("unite_{round}");
            program.ingress.actions.push(action(&name, "The packet goes where any of its messages goes.", steps));
            known.push(Node::Do(name));
            open = united;
        }
        let keys = open.concat().into_iter().zip(self.words()).map(|(place, word)| Key {
            name: format!("{}.{}", place.header, place.field),
            value: Expression::Field(place),
            width: self.sets.width(word),
            kind: Kind::Exact,
        });
        let mut spread = Table {
            name: "spread".to_owned(),
            keys: keys.collect(),
            actions: ["forward", "multicast", "discard"].map(str::to_owned).to_vec(),
            // Other unions of sets go to all ports, where egress drops what is not wanted.
            default: self.sets.send(&self.sets.ports),
            entries: Vec::new(),
        };
        for set in self.sets.sets.iter().chain([&Vec::new()]) {
            let (action, arguments) = self.sets.send(set);
            let matches = self.sets.bits(set).into_iter().map(Match::Exact).collect();
            spread.entries.push(Entry::new(matches, &action, arguments));
        }
        let everywhere =
            Table { name: "everywhere".to_owned(), keys: Vec::new(), entries: Vec::new(), ..spread.clone() };
        known.push(Node::Apply(spread.name.clone()));
        let many = Expression::Field(program.kept("too_many")).of("==", Expression::Number(1, 1));
        let parsed = Node::If(many, vec![Node::Apply(everywhere.name.clone())], known);
        program.ingress.tables.extend([spread, everywhere]);
        program.ingress.nodes.push(Node::Do("clear".to_owned()));
        program.ingress.nodes.push(match program.architecture {
            // Tofino drops such packets by itself.
            Architecture::Tna => parsed,
            Architecture::V1model => {
                let error = Expression::Field(Place::new(STANDARD, "parser_error"));
                let failed = error.of("!=", Expression::Number(0, 32));
                Node::If(failed, vec![Node::Do("discard".to_owned())], vec![parsed])
            }
        });
    }

    fn egress(&self, program: &mut Program) {
        let count_width = self.batch.count.map_or(16, |(_, width)| width);
        for (name, width) in [("pruned", count_width), ("removed", 16), ("lengths", 16), ("changed", 1)] {
            program.metadata.push((name.to_owned(), width));
        }
        program.checksum_when = Some("changed".to_owned());
        let mut control = Control::default();
        control.actions.push(action("nothing", "Leaves the copy alone.", Vec::new()));
        control.actions.push(action("drop_copy", "No message is for this port.", vec![Step::Drop]));
        self.own_port(program, &mut control);
        control.actions.push(action(
            "none_pruned",
            "All messages are there yet.",
            vec![
                Step::Set(meta("pruned"), Expression::Number(0, count_width)),
                Step::Set(meta("removed"), Expression::Number(0, 16)),
                Step::Set(meta("lengths"), Expression::Number(0, 16)),
            ],
        ));
        let mut nodes = ["own_port"].map(|name| Node::Apply(name.to_owned())).to_vec();
        nodes.extend(["none_pruned", "meet"].map(|name| Node::Do(name.to_owned())));
        let mut shared = Vec::new();
        for slot in 0..self.slots {
            for word in self.words() {
                let place = meta(&format!("shared_{slot}_{word}"));
                program.metadata.push((place.field.clone(), self.sets.width(word)));
                let ports = Expression::Field(program.kept(&format!("ports_{slot}_{word}")));
                shared.push(Step::Set(place, ports.of("&", Expression::meta(format!("mine_{word}")))));
            }
            let prune = self.prune(slot, program);
            let table = self.unwanted(&format!("keep_{slot}"), slot, &prune.name);
            let mut none = Vec::new();
            if slot == 0 {
                // Without messages the headers alone decide.
                let alone = self.unwanted("keep_headers", 0, "drop_copy");
                none.push(Node::Apply(alone.name.clone()));
                control.tables.push(alone);
            }
            let present = self.parsing.present(self.batch, slot);
            nodes.push(Node::If(present, vec![Node::Apply(table.name.clone())], none));
            control.actions.push(prune);
            control.tables.push(table);
        }
        control.actions.push(action("meet", "Whether messages go to the copy's own port.", shared));
        let pruned = || Expression::meta("pruned");
        let all = pruned().of("==", Expression::Field(self.count()));
        let mut fixes = Vec::new();
        for fix in self.fixes(program) {
            fixes.push(Node::Do(fix.name.clone()));
            control.actions.push(fix);
        }
        let rest = Node::If(all, vec![Node::Do("drop_copy".to_owned())], fixes);
        nodes.push(when(pruned().of("!=", Expression::Number(0, count_width)), vec![rest]));
        let few = Expression::Field(program.kept("too_many")).of("==", Expression::Number(0, 1));
        control.nodes.push(when(few, nodes));
        program.egress = control;
    }

    /// The table with the set that has only the copy's own port.
    fn own_port(&self, program: &mut Program, control: &mut Control) {
        let mut steps = Vec::new();
        for word in self.words() {
            let place = meta(&format!("mine_{word}"));
            program.metadata.push((place.field.clone(), self.sets.width(word)));
            steps.push(Step::Set(place, Expression::Parameter(word)));
        }
        control.actions.push(Action {
            name: "port_bit".to_owned(),
            purpose: "The copy's own port.",
            parameters: self.words().map(|word| (format!("word_{word}"), self.sets.width(word))).collect(),
            steps,
        });
        let entry = |port: &u16| {
            Entry::new(vec![Match::Exact((*port).into())], "port_bit", self.sets.bits(std::slice::from_ref(port)))
        };
        let name = match program.architecture {
            Architecture::V1model => "standard_metadata.egress_port",
            Architecture::Tna => "eg_intr_md.egress_port",
        };
        control.tables.push(Table {
            name: "own_port".to_owned(),
            keys: vec![Key {
                value: Expression::Field(Place::new(STANDARD, "egress_port")),
                name: name.to_owned(),
                width: 9,
                kind: Kind::Exact,
            }],
            actions: vec!["port_bit".to_owned()],
            default: ("port_bit".to_owned(), vec![0; self.sets.words]),
            entries: self.sets.ports.iter().map(entry).collect(),
        });
    }

    /// A table that runs an action if the message of a slot is not for the copy's port.
    fn unwanted(&self, name: &str, slot: usize, action: &str) -> Table {
        let key = |word| Key {
            value: Expression::meta(format!("shared_{slot}_{word}")),
            name: format!("meta.shared_{slot}_{word}"),
            width: self.sets.width(word),
            kind: Kind::Exact,
        };
        Table {
            name: name.to_owned(),
            keys: self.words().map(key).collect(),
            actions: vec![action.to_owned(), "nothing".to_owned()],
            default: ("nothing".to_owned(), Vec::new()),
            entries: vec![Entry::new(self.words().map(|_| Match::Exact(0)).collect(), action, Vec::new())],
        }
    }

    fn count(&self) -> Place {
        let (offset, width) = self.batch.count.unwrap_or((0, 16));
        let formats = self.parsing.formats;
        let name = field_name(formats, self.header, offset, width);
        Place::new(&instance(formats, self.header, 0), &name)
    }

    fn prune(&self, slot: usize, program: &Program) -> Action {
        let add = |name: &str, value: Expression, width: u16| {
            Step::Set(meta(name), Expression::meta(name).of("+", value).bits(width))
        };
        let count_width = self.batch.count.map_or(16, |(_, width)| width);
        let mut steps = vec![add("pruned", Expression::Number(1, count_width), count_width)];
        match self.batch.framing {
            Framing::Prefix(width) => {
                let length = Expression::Field(Place::new(&format!("length_{slot}"), "bytes"));
                steps.push(add("removed", if width == 16 { length } else { length.bits(16) }, 16));
                steps.push(add("lengths", Expression::Number((width / 8).into(), 16), 16));
            }
            Framing::Fixed(bytes) => steps.push(add("removed", Expression::Number(bytes.into(), 16), 16)),
        }
        steps.extend(self.headers(slot, program).into_iter().map(Step::Remove));
        let purpose = "Takes the message out of this copy.";
        Action { name: format!("prune_{slot}"), purpose, parameters: Vec::new(), steps }
    }

    /// The headers that only the states of a slot take.
    fn headers(&self, slot: usize, program: &Program) -> Vec<String> {
        let of_slot = |state: &&State| {
            let mut parts = state.name.split('_');
            let kind = parts.next().unwrap_or_default();
            matches!(kind, "message" | "other" | "take") && parts.next() == Some(slot.to_string().as_str())
        };
        let mut headers: Vec<String> = Vec::new();
        for extract in program.states.iter().filter(of_slot).flat_map(|state| &state.extracts) {
            let (Extract::Header(name) | Extract::Variable(name, _)) = extract;
            if !headers.contains(name) {
                headers.push(name.clone());
            }
        }
        headers
    }

    /// Makes count, lengths and checksums of what is left right. A UDP checksum of 0 says that there is none.
    fn fixes(&self, program: &Program) -> Vec<Action> {
        let less = |place: Place, name: &str, width: u16| {
            let value = Expression::Field(place.clone()).of("-", Expression::meta(name)).bits(width);
            Step::Set(place, value)
        };
        let total = Expression::meta("removed").of("+", Expression::meta("lengths")).bits(16);
        let count_width = self.batch.count.map_or(16, |(_, width)| width);
        let mut steps =
            vec![Step::Set(meta("changed"), Expression::Number(1, 1)), less(self.count(), "pruned", count_width)];
        let has = |name: &str| program.headers.iter().any(|header| header.name == name);
        for (header, field) in [("ipv4", "total_length"), ("ipv6", "payload_length"), ("udp", "length")] {
            if has(header) {
                steps.push(less(Place::new(header, field), "removed", 16));
            }
        }
        if has("udp") {
            steps.push(Step::Set(Place::new("udp", "checksum"), Expression::Number(0, 16)));
        }
        vec![
            action(
                "total",
                "The bytes that are gone, with the lengths in front.",
                vec![Step::Set(meta("removed"), total)],
            ),
            action("fix", "Makes count and lengths right.", steps),
        ]
    }
}
