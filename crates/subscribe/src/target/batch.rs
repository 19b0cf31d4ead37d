//! Packets of several messages: which ports they go to in all, and each copy with only the messages for its port.

use super::parser::{field_name, instance};
use super::pipeline::PortSets;
use super::program::*;
use crate::formats::{Batch, Framing, HeaderId, MessageFormats};

/// Writes ingress around the tables of the messages, and egress.
pub(super) fn write(
    formats: &MessageFormats,
    header: HeaderId,
    batch: Batch,
    slots: usize,
    sets: &PortSets,
    body: Vec<Node>,
    program: &mut Program,
) {
    for word in 0..sets.words {
        program.metadata.push((format!("ports_{word}"), sets.width(word)));
        program.metadata.push((format!("mine_{word}"), sets.width(word)));
    }
    program.metadata.push(("pruned".to_owned(), 16));
    program.metadata.push(("removed".to_owned(), 16));
    program.checksum_when = Some("changed".to_owned());
    program.metadata.push(("changed".to_owned(), 1));
    ingress(slots, sets, body, &mut program.ingress);
    let egress = Egress { formats, header, batch, slots, sets };
    let control = egress.control(program);
    program.egress = control;
}

fn port_words(slot: usize, word: usize) -> String {
    format!("ports_{slot}_{word}")
}

fn ingress(slots: usize, sets: &PortSets, body: Vec<Node>, control: &mut Control) {
    let set = |name: String, value| Step::Set(Place::new(META, &name), value);
    let words = 0..sets.words;
    let zero = |word| Expression::Number(0, sets.width(word));
    let clear = (0..slots).flat_map(|slot| words.clone().map(move |word| (slot, word)));
    control.actions.push(Action {
        name: "clear".to_owned(),
        purpose: "Messages that are not there go nowhere.",
        parameters: Vec::new(),
        steps: clear.map(|(slot, word)| set(port_words(slot, word), zero(word))).collect(),
    });
    let all = |word| {
        let each = (0..slots).map(|slot| Expression::meta(port_words(slot, word)));
        each.reduce(|left, right| left.of("|", right)).unwrap_or_else(|| zero(word))
    };
    control.actions.push(Action {
        name: "unite".to_owned(),
        purpose: "The packet goes where any of its messages goes.",
        parameters: Vec::new(),
        steps: words.clone().map(|word| set(format!("ports_{word}"), all(word))).collect(),
    });
    let keys = words.clone().map(|word| Key {
        value: Expression::meta(format!("ports_{word}")),
        name: format!("meta.ports_{word}"),
        width: sets.width(word),
        kind: Kind::Exact,
    });
    let mut spread = Table {
        name: "spread".to_owned(),
        keys: keys.collect(),
        actions: ["forward", "multicast", "discard"].map(str::to_owned).to_vec(),
        // Other unions of sets go to all ports, where egress drops what is not wanted.
        default: sets.send(&sets.ports),
        entries: Vec::new(),
    };
    for set in sets.sets.iter().chain([&Vec::new()]) {
        let (action, arguments) = sets.send(set);
        spread.entries.push(Entry {
            matches: sets.bits(set).into_iter().map(Match::Exact).collect(),
            action,
            arguments,
        });
    }
    control.tables.push(spread);
    let everywhere = Table {
        name: "everywhere".to_owned(),
        keys: Vec::new(),
        actions: ["forward", "multicast", "discard"].map(str::to_owned).to_vec(),
        default: sets.send(&sets.ports),
        entries: Vec::new(),
    };
    control.tables.push(everywhere);
    let mut known = body;
    known.push(Node::Do("unite".to_owned()));
    known.push(Node::Apply("spread".to_owned()));
    let failed = Expression::Field(Place::new(STANDARD, "parser_error")).of("!=", Expression::Number(0, 32));
    let many = Expression::meta("too_many").of("==", Expression::Number(1, 1));
    control.nodes = vec![
        Node::Do("clear".to_owned()),
        Node::If(
            failed,
            vec![Node::Do("discard".to_owned())],
            vec![Node::If(many, vec![Node::Apply("everywhere".to_owned())], known)],
        ),
    ];
}

struct Egress<'a> {
    formats: &'a MessageFormats,
    header: HeaderId,
    batch: Batch,
    slots: usize,
    sets: &'a PortSets,
}

impl Egress<'_> {
    fn control(&self, program: &Program) -> Control {
        let mut control = Control::default();
        let words = 0..self.sets.words;
        let meta = |name: &str| Place::new(META, name);
        control.actions.push(Action {
            name: "port_bit".to_owned(),
            purpose: "The copy's own port.",
            parameters: words.clone().map(|word| (format!("word_{word}"), self.sets.width(word))).collect(),
            steps: words
                .clone()
                .map(|word| Step::Set(meta(&format!("mine_{word}")), Expression::Parameter(word)))
                .collect(),
        });
        control.actions.push(Action {
            name: "drop_copy".to_owned(),
            purpose: "No message is for this port.",
            parameters: Vec::new(),
            steps: vec![Step::Drop],
        });
        let entries = self.sets.ports.iter().map(|port| Entry {
            matches: vec![Match::Exact((*port).into())],
            action: "port_bit".to_owned(),
            arguments: self.sets.bits(&[*port]),
        });
        control.tables.push(Table {
            name: "own_port".to_owned(),
            keys: vec![Key {
                value: Expression::Field(Place::new(STANDARD, "egress_port")),
                name: "standard_metadata.egress_port".to_owned(),
                width: 9,
                kind: Kind::Exact,
            }],
            actions: vec!["port_bit".to_owned()],
            default: ("port_bit".to_owned(), vec![0; self.sets.words]),
            entries: entries.collect(),
        });
        let number = |value| Expression::Number(value, 16);
        control.actions.push(Action {
            name: "none_pruned".to_owned(),
            purpose: "All messages are there yet.",
            parameters: Vec::new(),
            steps: vec![Step::Set(meta("pruned"), number(0)), Step::Set(meta("removed"), number(0))],
        });
        let mut nodes = vec![Node::Apply("own_port".to_owned()), Node::Do("none_pruned".to_owned())];
        for slot in 0..self.slots {
            let action = self.prune(slot, program);
            let unwanted = self.unwanted(slot);
            let prune = vec![Node::If(unwanted, vec![Node::Do(action.name.clone())], Vec::new())];
            let none = if slot == 0 {
                // Without messages the headers alone decide.
                vec![Node::If(self.unwanted(0), vec![Node::Do("drop_copy".to_owned())], Vec::new())]
            } else {
                Vec::new()
            };
            nodes.push(Node::If(Expression::Valid(format!("rest_{slot}")), prune, none));
            control.actions.push(action);
        }
        let pruned = || Expression::meta("pruned");
        let fix = self.fix(program);
        let all = pruned().of("==", self.count().bits(16));
        let rest = vec![Node::If(all, vec![Node::Do("drop_copy".to_owned())], vec![Node::Do(fix.name.clone())])];
        control.actions.push(fix);
        nodes.push(Node::If(pruned().of("!=", number(0)), rest, Vec::new()));
        let few = Expression::meta("too_many").of("==", Expression::Number(0, 1));
        control.nodes = vec![Node::If(few, nodes, Vec::new())];
        control
    }

    /// The copy's port is none of a message's.
    fn unwanted(&self, slot: usize) -> Expression {
        let apart = |word| {
            let mine = Expression::meta(format!("mine_{word}"));
            let both = Expression::meta(port_words(slot, word)).of("&", mine);
            both.of("==", Expression::Number(0, self.sets.width(word)))
        };
        let first = apart(0);
        (1..self.sets.words).map(apart).fold(first, |left, right| left.of("&&", right))
    }

    fn count(&self) -> Expression {
        Expression::Field(self.count_place())
    }

    fn count_place(&self) -> Place {
        let (offset, width) = self.batch.count.unwrap_or((0, 16));
        let name = field_name(self.formats, self.header, offset, width);
        Place::new(&instance(self.formats, self.header, 0), &name)
    }

    fn prune(&self, slot: usize, program: &Program) -> Action {
        let ending = format!("_{slot}");
        let message = program.states.iter().filter(|state| state.name.starts_with(&format!("message{ending}_")));
        let mut headers: Vec<String> = Vec::new();
        for extract in message.flat_map(|state| &state.extracts) {
            let (Extract::Header(name) | Extract::Variable(name, _)) = extract;
            if !headers.contains(name) {
                headers.push(name.clone());
            }
        }
        let rest = format!("rest_{slot}");
        headers.retain(|name| *name != rest);
        let bytes = match self.batch.framing {
            Framing::Prefix(width) => {
                headers.insert(0, format!("length_{slot}"));
                let length = Expression::Field(Place::new(&format!("length_{slot}"), "bytes"));
                length.bits(16).of("+", Expression::Number((width / 8).into(), 16)).bits(16)
            }
            Framing::Fixed(bytes) => Expression::Number(bytes.into(), 16),
        };
        headers.push(rest);
        let add = |name: &str, value: Expression| {
            Step::Set(Place::new(META, name), Expression::meta(name).of("+", value).bits(16))
        };
        let mut steps = vec![add("pruned", Expression::Number(1, 16)), add("removed", bytes)];
        steps.extend(headers.into_iter().map(Step::Remove));
        Action {
            name: format!("prune_{slot}"),
            purpose: "Takes the message out of this copy.",
            parameters: Vec::new(),
            steps,
        }
    }

    /// Count, lengths and checksums of what is left. A UDP checksum of 0 says that there is none.
    fn fix(&self, program: &Program) -> Action {
        let less = |place: Place, name: &str, width: u16| {
            let by = Expression::meta(name).bits(width);
            Step::Set(place.clone(), Expression::Field(place).of("-", by).bits(width))
        };
        let count_width = self.batch.count.map_or(16, |(_, width)| width);
        let mut steps = vec![
            Step::Set(Place::new(META, "changed"), Expression::Number(1, 1)),
            less(self.count_place(), "pruned", count_width),
        ];
        let has = |name: &str| program.headers.iter().any(|header| header.name == name);
        if has("ipv4") {
            steps.push(less(Place::new("ipv4", "total_length"), "removed", 16));
        }
        if has("ipv6") {
            steps.push(less(Place::new("ipv6", "payload_length"), "removed", 16));
        }
        if has("udp") {
            steps.push(less(Place::new("udp", "length"), "removed", 16));
            steps.push(Step::Set(Place::new("udp", "checksum"), Expression::Number(0, 16)));
        }
        Action { name: "fix".to_owned(), purpose: "Makes count and lengths right.", parameters: Vec::new(), steps }
    }
}
