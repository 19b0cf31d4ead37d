//! What programs call: tables, actions, externs, and the packet itself.

use super::*;

impl Switch {
    /// A method of a table, a register or the like.
    pub(super) fn object<'a>(
        &mut self,
        control: Option<&'a Control>,
        object: &str,
        method: &str,
        arguments: &[Expr],
        names: &Names<'a>,
        run: &mut Run,
    ) -> Result<Val, TooShort> {
        let nothing = Val::List(Vec::new());
        match method {
            "apply" => {
                let control = control.expect("a control");
                return Ok(Val::Applied(self.apply(control, object, names, run)));
            }
            "read" => {
                let value = self.registers.get(object).map_or(0, |values| values[0]);
                let place = Self::place(&arguments[0], names);
                let Type::Bits(width) = self.type_of(&place) else { panic!("{place}") };
                run.values.insert(place, Val::Bits(value, width));
            }
            "write" => {
                let value = self.value(control, &arguments[1], names, run)?.number();
                self.registers.insert(object.to_owned(), vec![value]);
            }
            "execute" => return Ok(self.execute(control.expect("a control"), object, names, run)),
            "update" => return Ok(checksum(self.value(control, &arguments[0], names, run)?)),
            "set" => run.counter = self.value(control, &arguments[0], names, run)?.number() as i64,
            "decrement" => run.counter -= self.value(control, &arguments[0], names, run)?.number() as i64,
            "is_zero" => return Ok(Val::Bool(run.counter == 0)),
            _ => panic!("{object}.{method}"),
        }
        Ok(nothing)
    }

    /// A register's action: its pair as a local value, and the result.
    pub(super) fn execute<'a>(&mut self, control: &'a Control, object: &str, names: &Names<'a>, run: &mut Run) -> Val {
        let instance = control.instances.iter().find(|it| it.name == object).expect("an action of a register");
        let Expr::Name(register) = &instance.arguments[0] else { panic!("{instance:?}") };
        let function = &instance.functions[0];
        let [pair, result] = &function.parameters[..] else { panic!("{function:?}") };
        let fields: Vec<String> = self.types[pair.kind_name()].fields.iter().map(|it| it.1.clone()).collect();
        let mut inner = names.clone();
        for (field, value) in fields.iter().zip(&self.registers[register]) {
            inner.locals.insert(format!("{}.{field}", pair.name), Val::Bits(*value, 32));
        }
        inner.locals.insert(result.name.clone(), Val::Bits(0, 32));
        for statement in &function.body {
            assert!(self.statement(Some(control), statement, &mut inner, run).is_ok());
        }
        let values = fields.iter().map(|field| inner.locals[&format!("{}.{field}", pair.name)].number()).collect();
        self.registers.insert(register.clone(), values);
        inner.locals[&result.name].clone()
    }

    pub(super) fn apply<'a>(&mut self, control: &'a Control, name: &str, names: &Names<'a>, run: &mut Run) -> bool {
        let table = control.tables.iter().find(|it| it.name == name).expect("a table");
        let mut values = Vec::new();
        for (value, ..) in &table.keys {
            // A key may be anything as long as no entry of the other keys' values asks for it.
            if let Expr::Member(of, _) = value
                && matches!(of.as_ref(), Expr::Name(_) | Expr::Member(..))
                && let place = Self::place(value, names)
                && let Type::Bits(width @ ..=128) = self.type_of(&place)
                && !run.values.contains_key(&place)
            {
                values.push((ANYTHING & mask(width), width));
                continue;
            }
            let Ok(value) = self.value(Some(control), value, names, run) else { panic!("{value:?}") };
            values.push(match value {
                Val::Bits(value, width) => (value, width),
                other => (other.number(), 1),
            });
        }
        let full = format!("{}.{name}", control.name);
        let matching = |entry: &&Entry| {
            entry.keys.iter().zip(&values).all(|(key, (value, width))| match key {
                Key::Exact(wanted) => value == wanted,
                // bmv2 counts a prefix from the top of the bytes that a value is kept in.
                Key::Lpm(wanted, length) => {
                    let kept = if self.kind == Kind::V1model { width.next_multiple_of(8) } else { *width };
                    (value ^ wanted) & mask(kept) & !mask(kept - length) == 0
                }
                Key::Range(low, high) => low <= value && value <= high,
                Key::Ternary(wanted, bits) => value & bits == *wanted,
                Key::Any => true,
            })
        };
        let length = |entry: &&Entry| {
            entry.keys.iter().map(|key| if let Key::Lpm(_, length) = key { *length } else { 0 }).sum::<u32>()
        };
        let found = self.entries.get(&full).into_iter().flatten().filter(matching);
        let best = match self.first {
            First::SmallestPriority => found.min_by_key(|it| (it.priority, std::cmp::Reverse(length(it)))),
            First::GreatestPriority => found.max_by_key(|it| (it.priority, length(it))),
        };
        let hit = best.is_some();
        let (action, data) = match (best, self.defaults.get(&full)) {
            (Some(entry), _) => (entry.action.clone(), entry.data.clone()),
            (None, Some((action, data))) => (action.clone(), data.clone()),
            (None, None) => {
                let number = |it: &Expr| if let Expr::Number(value, _) = it { *value } else { panic!("{it:?}") };
                (table.default.0.clone(), table.default.1.iter().map(number).collect())
            }
        };
        self.action(control, &action, &data, names, run);
        hit
    }

    pub(super) fn action<'a>(
        &mut self,
        control: &'a Control,
        name: &str,
        data: &[u128],
        names: &Names<'a>,
        run: &mut Run,
    ) {
        let action = control.actions.iter().find(|it| it.name == name).expect("an action");
        let mut inner = names.clone();
        for (parameter, value) in action.parameters.iter().zip(data) {
            let Type::Bits(width) = parameter.kind else { panic!("{parameter:?}") };
            inner.locals.insert(parameter.name.clone(), Val::Bits(*value, width));
        }
        for statement in &action.body {
            assert!(self.statement(Some(control), statement, &mut inner, run).is_ok());
        }
    }

    pub(super) fn extract(&self, header: &str, length: Option<usize>, run: &mut Run) -> Result<(), TooShort> {
        let Type::Named(kind, _) = self.type_of(header) else { panic!("{header}") };
        let before = run.at;
        let all: usize = self.types[&kind]
            .fields
            .iter()
            .map(|(kind, _)| match kind {
                Type::Bits(width) => *width as usize,
                Type::Varbit(most) => length.filter(|length| *length <= *most as usize).unwrap_or(usize::MAX),
                _ => panic!("{header}"),
            })
            .fold(0, usize::saturating_add);
        run.take(all)?;
        run.at = before;
        for (kind, name) in &self.types[&kind].fields {
            let width = if let Type::Bits(width) = kind { *width as usize } else { all };
            let bits = run.take(width)?;
            let value = if matches!(kind, Type::Varbit(_)) { Val::Wide(bits) } else { of_bits(&bits) };
            run.values.insert(format!("{header}.{name}"), value);
        }
        run.valid.insert(header.to_owned());
        Ok(())
    }

    /// A header, or all of a structure's.
    pub(super) fn emit(&self, place: &str, run: &mut Run) {
        let Type::Named(kind, _) = self.type_of(place) else { panic!("{place}") };
        let fields = &self.types[&kind];
        if !fields.is_header {
            fields.fields.iter().for_each(|(_, name)| self.emit(&format!("{place}.{name}"), run));
            return;
        }
        if !run.valid.contains(place) {
            return;
        }
        for (kind, name) in &fields.fields {
            match (run.values.get(&format!("{place}.{name}")), kind) {
                (Some(Val::Bits(value, width)), _) => run.out.extend(to_bits(*value, *width)),
                (Some(Val::Wide(bits)), _) => run.out.extend(bits),
                // What was never set is anything.
                (None, Type::Bits(width)) => run.out.extend((0..*width).map(|bit| bit % 2 == 0)),
                other => panic!("{other:?}"),
            }
        }
    }
}
