//! What expressions say of a packet.

use super::*;

impl Switch {
    pub(super) fn assign(&self, to: &Expr, value: Val, names: &mut Names<'_>, run: &mut Run) {
        let value = |width: u32| match &value {
            Val::Bits(value, _) => Val::Bits(value & mask(width), width),
            other => other.clone(),
        };
        if let Some(local) = self.local(to, names) {
            let width = if let Val::Bits(_, width) = names.locals[&local] { width } else { panic!("{local}") };
            names.locals.insert(local, value(width));
            return;
        }
        let place = Self::place(to, names);
        let width = match self.type_of(&place) {
            Type::Bits(width) => width,
            _ => 0,
        };
        run.values.insert(place, value(width));
    }

    /// The name of a local value: `x`, or `x.member` of a pair.
    pub(super) fn local(&self, value: &Expr, names: &Names<'_>) -> Option<String> {
        let name = match value {
            Expr::Name(name) => name.clone(),
            Expr::Member(of, member) => match of.as_ref() {
                Expr::Name(name) => format!("{name}.{member}"),
                _ => return None,
            },
            _ => return None,
        };
        names.locals.contains_key(&name).then_some(name)
    }

    pub(super) fn place(value: &Expr, names: &Names<'_>) -> String {
        match value {
            Expr::Name(name) => {
                names.parameters.get(name.as_str()).unwrap_or_else(|| panic!("{name} is no parameter")).clone()
            }
            Expr::Member(of, member) => format!("{}.{member}", Self::place(of, names)),
            _ => panic!("{value:?} is no place"),
        }
    }

    pub(super) fn type_of(&self, place: &str) -> Type {
        let mut parts = place.split('.');
        let mut kind = Type::Named(parts.next().unwrap_or_default().to_owned(), Vec::new());
        for part in parts {
            let Type::Named(name, _) = &kind else { panic!("{place}") };
            let fields = &self.types[name].fields;
            kind = fields.iter().find(|(_, name)| name == part).unwrap_or_else(|| panic!("{place}")).0.clone();
        }
        kind
    }

    /// Reads a field. Those of headers that are not there are anything; metadata of Tofino has to be set before.
    pub(super) fn read(&self, place: &str, run: &Run) -> Val {
        let kind = self.type_of(place);
        let (owner, _) = place.rsplit_once('.').unwrap_or_default();
        let in_header = matches!(self.type_of(owner), Type::Named(name, _) if self.types[&name].is_header);
        let anything = in_header
            && self.types.contains_key("headers_t")
            && owner.starts_with("headers_t")
            && !run.valid.contains(owner);
        let width = match kind {
            Type::Bits(width) => width,
            Type::Error => return run.values.get(place).cloned().unwrap_or(Val::Error(false)),
            Type::Varbit(_) => return run.values.get(place).cloned().unwrap_or(Val::Wide(Vec::new())),
            _ => panic!("{place}"),
        };
        if anything && width <= 128 {
            return Val::Bits(ANYTHING & mask(width), width);
        }
        match run.values.get(place) {
            Some(value) => value.clone(),
            None if self.kind == Kind::V1model && width <= 128 => Val::Bits(0, width),
            None => panic!("{place} is read before it is set"),
        }
    }

    pub(super) fn value<'a>(
        &mut self,
        control: Option<&'a Control>,
        value: &Expr,
        names: &Names<'a>,
        run: &mut Run,
    ) -> Result<Val, TooShort> {
        Ok(match value {
            Expr::Number(value, width) => Val::Bits(*value, width.unwrap_or(0)),
            Expr::Bool(value) => Val::Bool(*value),
            Expr::Name(_) | Expr::Member(..) => {
                if let Some(local) = self.local(value, names) {
                    return Ok(names.locals[&local].clone());
                }
                if let Expr::Member(of, member) = value {
                    match of.as_ref() {
                        Expr::Name(name) if name == "error" => return Ok(Val::Error(member != "NoError")),
                        Expr::Call(..) => {
                            let Val::Applied(hit) = self.value(control, of, names, run)? else { panic!("{value:?}") };
                            return Ok(Val::Bool(hit == (member == "hit")));
                        }
                        _ => {}
                    }
                }
                self.read(&Self::place(value, names), run)
            }
            Expr::Call(function, kinds, arguments) => self.call(control, function, kinds, arguments, names, run)?,
            Expr::Slice(of, high, low) => match self.value(control, of, names, run)? {
                Val::Bits(value, _) => Val::Bits(value >> low & mask(high - low + 1), high - low + 1),
                Val::Wide(bits) => of_bits(&bits[bits.len() - 1 - *high as usize..bits.len() - *low as usize]),
                other => panic!("{other:?}"),
            },
            Expr::Not(of) => Val::Bool(!self.value(control, of, names, run)?.holds()),
            Expr::Cast(Type::Bits(width), of) => {
                Val::Bits(self.value(control, of, names, run)?.number() & mask(*width), *width)
            }
            Expr::Choice(test, yes, no) => {
                let part = if self.value(control, test, names, run)?.holds() { yes } else { no };
                self.value(control, part, names, run)?
            }
            Expr::List(all) => {
                let mut values = Vec::new();
                for it in all {
                    values.push(self.value(control, it, names, run)?);
                }
                Val::List(values)
            }
            Expr::Binary(operator, left, right) => {
                let left = self.value(control, left, names, run)?;
                if (operator == "&&" && !left.holds()) || (operator == "||" && left.holds()) {
                    return Ok(left);
                }
                let right = self.value(control, right, names, run)?;
                binary(operator, &left, &right)
            }
            _ => panic!("{value:?}"),
        })
    }

    pub(super) fn call<'a>(
        &mut self,
        control: Option<&'a Control>,
        function: &Expr,
        kinds: &[Type],
        arguments: &[Expr],
        names: &Names<'a>,
        run: &mut Run,
    ) -> Result<Val, TooShort> {
        let nothing = Val::List(Vec::new());
        let Expr::Member(of, method) = function else {
            let Expr::Name(name) = function else { panic!("{function:?}") };
            match name.as_str() {
                "mark_to_drop" => {
                    run.values.insert("standard_metadata_t.egress_spec".to_owned(), Val::Bits(511, 9));
                    run.values.insert("standard_metadata_t.mcast_grp".to_owned(), Val::Bits(0, 16));
                }
                "update_checksum" => {
                    if self.value(control, &arguments[0], names, run)?.holds() {
                        let sum = checksum(self.value(control, &arguments[1], names, run)?);
                        run.values.insert(Self::place(&arguments[2], names), sum);
                    }
                }
                _ => self.action(control.expect("a control"), name, &[], names, run),
            }
            return Ok(nothing);
        };
        if let Expr::Name(object) = of.as_ref()
            && !names.parameters.contains_key(object.as_str())
        {
            return self.object(control, object, method, arguments, names, run);
        }
        let object = Self::place(of, names);
        match (object.as_str(), method.as_str()) {
            ("packet_in", "extract") => {
                let header = Self::place(&arguments[0], names);
                let length = match arguments.get(1) {
                    Some(length) => Some(self.value(control, length, names, run)?.number() as usize),
                    None => None,
                };
                self.extract(&header, length, run)?;
            }
            ("packet_in", "advance") => {
                let bits = match &arguments[0] {
                    Expr::Name(name) if name == "PORT_METADATA_SIZE" => PORT_METADATA_BITS,
                    other => panic!("{other:?}"),
                };
                run.take(bits)?;
            }
            ("packet_in", "lookahead") => {
                let Type::Bits(width) = kinds[0] else { panic!("{kinds:?}") };
                let at = run.at;
                let bits = run.take(width as usize)?;
                run.at = at;
                return Ok(of_bits(&bits));
            }
            ("packet_out", "emit") => {
                let what = Self::place(&arguments[0], names);
                self.emit(&what, run);
            }
            (header, "isValid") => return Ok(Val::Bool(run.valid.contains(header))),
            (header, "setValid") => {
                run.valid.insert(header.to_owned());
            }
            (header, "setInvalid") => {
                run.valid.remove(header);
            }
            other => panic!("{other:?}"),
        }
        Ok(nothing)
    }
}
