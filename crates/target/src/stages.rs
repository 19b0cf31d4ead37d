//! Stages of compiled tables as tables of a program.

use crate::Unsupported;
use crate::parser::{field_name, instance};
use crate::pipeline::Builder;
use crate::program::*;
use weftwire_subscribe::compiler::Variable;
use weftwire_subscribe::cost::{Classes, disjoint, prefix_list};
use weftwire_subscribe::formats::MatchKind;
use weftwire_subscribe::tables::Stage;
use weftwire_subscribe::values::Interval;

/// Most bits of a key that Tofino matches by ranges: five nibbles of a unit of its TCAM.
const TNA_RANGE_BITS: u16 = 20;

/// What a stage matches.
struct Subject {
    /// For names of tables.
    name: String,
    key: Key,
}

impl Builder<'_> {
    /// A stage: from state and value to the next state.
    pub(super) fn stage(
        &self,
        slot: usize,
        variable: Variable,
        stage: &Stage,
        program: &mut Program,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Unsupported> {
        let mut subject = self.subject(slot, variable, stage)?;
        let mut entries: Vec<(u32, Interval, u32)> = Vec::new();
        for (state, rows) in &stage.rows {
            if let Variable::Present(_) = variable {
                entries.extend((0..2).map(|value| (*state, Interval::point(value), rows.next(value))));
            } else {
                entries.extend(rows.entries().map(|entry| (*state, entry.values, entry.next)));
            }
        }
        match variable {
            Variable::Field(_) if self.targets.compress && stage.rows.len() > 1 => {
                let classes = Classes::of(stage);
                entries.clear();
                for (state, rows) in &stage.rows {
                    let own = disjoint(rows).into_iter().filter(|entry| entry.next != rows.default);
                    entries.extend(own.map(|entry| (*state, classes.codes(entry.values), entry.next)));
                }
                self.classify(slot, &mut subject, stage.kind(), &classes, program, nodes);
            }
            Variable::State(id) => self.window_entries(id, stage, &mut subject.key, &mut entries)?,
            // The narrowest prefix wins only where prefixes are matched.
            _ if stage.kind() == MatchKind::Lpm && subject.key.kind != Kind::Lpm => {
                entries.clear();
                for (state, rows) in &stage.rows {
                    let own = disjoint(rows).into_iter().filter(|entry| entry.next != rows.default);
                    entries.extend(own.map(|entry| (*state, entry.values, entry.next)));
                }
            }
            _ => {}
        }
        let Subject { name, key } = subject;
        let (kind, width) = (key.kind, key.width);
        let go = format!("go_{slot}");
        let mut table = Table {
            name: format!("{name}_{slot}"),
            keys: vec![self.state_key(slot), key],
            actions: vec![go.clone(), "nothing".to_owned()],
            default: ("nothing".to_owned(), Vec::new()),
            entries: Vec::new(),
        };
        for (state, values, next) in entries {
            for found in matches(kind, values, width) {
                let found = vec![Match::Exact(state.into()), found];
                table.entries.push(Entry::new(found, &go, vec![next.into()]));
            }
        }
        nodes.push(Node::Apply(table.name.clone()));
        if let Variable::Present(_) = variable {
            program.ingress.tables.push(table);
            return Ok(());
        }
        // What a state does by default stands in the same table if something says that it is asked last.
        let last = match kind {
            Kind::Lpm => Some(Match::Lpm(0, 0)),
            Kind::Ternary if self.architecture == Architecture::Tna => Some(Match::Ternary(0, 0)),
            Kind::Range if self.architecture == Architecture::Tna => {
                Some(Match::Range(0, Interval::of_width(width).last))
            }
            _ => None,
        };
        let mut others = Table {
            name: format!("{name}_{slot}_else"),
            keys: vec![self.state_key(slot)],
            entries: Vec::new(),
            ..table.clone()
        };
        for (state, rows) in &stage.rows {
            let state = Match::Exact((*state).into());
            let next = vec![rows.default.into()];
            match last {
                Some(any) => {
                    let fallback = kind != Kind::Lpm;
                    table.entries.push(Entry { fallback, ..Entry::new(vec![state, any], &go, next) });
                }
                None => others.entries.push(Entry::new(vec![state], &go, next)),
            }
        }
        if last.is_none() {
            nodes.pop();
            nodes.push(Node::ApplyOr(table.name.clone(), vec![Node::Apply(others.name.clone())]));
            program.ingress.tables.push(table);
            program.ingress.tables.push(others);
        } else {
            program.ingress.tables.push(table);
        }
        Ok(())
    }

    fn subject(&self, slot: usize, variable: Variable, stage: &Stage) -> Result<Subject, Unsupported> {
        let formats = self.compiler.formats();
        let width = self.compiler.width(variable);
        let (name, value, key) = match variable {
            Variable::Present(header) => {
                let it = instance(formats, header, slot);
                let valid = if self.architecture == Architecture::Tna { "$valid" } else { "$valid$" };
                let key = format!("hdr.{it}.{valid}");
                (format!("has_{}", formats.header(header).name), Expression::Valid(it), key)
            }
            Variable::Field(field) => {
                let known = formats.field(field);
                let it = instance(formats, known.header, slot);
                let its = field_name(formats, known.header, known.offset, known.width);
                let name = format!("{}_{}", formats.header(known.header).name, known.name);
                (name, Expression::Field(Place::new(&it, &its)), format!("hdr.{it}.{its}"))
            }
            Variable::State(id) => (
                format!("window_{}", id.0),
                Expression::meta(format!("value_{}", id.0)),
                format!("meta.value_{}", id.0),
            ),
        };
        Ok(Subject { name, key: Key { value, name: key, width, kind: self.kind(stage.kind(), width) } })
    }

    /// What the switch matches values of so many bits by.
    pub(super) fn kind(&self, kind: MatchKind, width: u16) -> Kind {
        let too_wide = self.architecture == Architecture::Tna && width > TNA_RANGE_BITS;
        match kind {
            MatchKind::Exact => Kind::Exact,
            // bmv2 counts a prefix from the top of the bytes that a key is kept in, so that of 9 bits it looks at none.
            MatchKind::Lpm if self.architecture == Architecture::Tna || width.is_multiple_of(8) => Kind::Lpm,
            MatchKind::Range | MatchKind::Lpm if self.targets.ternary || too_wide => Kind::Ternary,
            MatchKind::Range | MatchKind::Lpm => Kind::Range,
        }
    }

    /// A table from a field's values to their classes, which the stage matches instead.
    fn classify(
        &self,
        slot: usize,
        subject: &mut Subject,
        kind: MatchKind,
        classes: &Classes,
        program: &mut Program,
        nodes: &mut Vec<Node>,
    ) {
        let name = format!("class_{}_{slot}", subject.name);
        let width = classes.bits();
        program.metadata.push((name.clone(), width));
        let action = format!("is_{name}");
        program.ingress.actions.push(Action {
            name: action.clone(),
            purpose: "The class of values that the field's value is of.",
            parameters: vec![("code".to_owned(), width)],
            steps: vec![Step::Set(Place::new(META, &name), Expression::Parameter(0))],
        });
        let mut entries = Vec::new();
        for (code, values) in classes.list() {
            for found in matches(subject.key.kind, values, subject.key.width) {
                entries.push(Entry::new(vec![found], &action, vec![code]));
            }
        }
        let key = Key {
            value: Expression::meta(&name),
            name: format!("meta.{name}"),
            width,
            kind: match kind {
                MatchKind::Exact => Kind::Exact,
                MatchKind::Lpm | MatchKind::Range => self.kind(MatchKind::Range, width),
            },
        };
        program.ingress.tables.push(Table {
            name: name.clone(),
            keys: vec![std::mem::replace(&mut subject.key, key)],
            actions: vec![action.clone()],
            default: (action, vec![0]),
            entries,
        });
        // In front of everything, for it depends on nothing.
        nodes.insert(0, Node::Apply(name));
    }
}

/// What one interval asks for, in a table of a kind.
fn matches(kind: Kind, values: Interval, width: u16) -> Vec<Match> {
    let Interval { first, last } = values;
    let all = Interval::of_width(width).last;
    match kind {
        Kind::Exact => (first..=last).map(Match::Exact).collect(),
        Kind::Range => vec![Match::Range(first, last)],
        Kind::Lpm => prefix_list(values, width)
            .map(|prefix| {
                let free = 128 - (prefix.last - prefix.first).leading_zeros();
                Match::Lpm(prefix.first, width - free as u16)
            })
            .collect(),
        Kind::Ternary => prefix_list(values, width)
            .map(|prefix| Match::Ternary(prefix.first, all & !(prefix.last - prefix.first)))
            .collect(),
    }
}
