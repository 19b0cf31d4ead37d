//! Types and rules of programs: every name is declared, widths agree, blocks have their architecture's parameters, and of
//! Tofino what is known of its limits.

use super::architectures::{Kind, is_own};
use super::syntax::*;
use std::collections::{BTreeMap, BTreeSet};

/// The type of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Ty {
    Of(Type),
    /// A number without a width.
    Number,
    List(Vec<Ty>),
    Action,
    Table,
    /// What a table's `apply` says.
    Applied,
    Errors,
}

pub struct Checker<'a> {
    file: &'a File,
    kind: Kind,
    types: BTreeMap<String, Fields>,
}

type Scope = BTreeMap<String, (Ty, bool)>;

fn bits(width: u32) -> Ty {
    Ty::Of(Type::Bits(width))
}

fn named(kind: &Ty) -> Option<(&str, &[Type])> {
    match kind {
        Ty::Of(Type::Named(name, arguments)) => Some((name, arguments)),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    pub fn new(file: &'a File, kind: Kind) -> Checker<'a> {
        let mut types = BTreeMap::new();
        for it in kind.types().into_iter().chain(file.types.iter().cloned()) {
            assert!(types.insert(it.name.clone(), it.clone()).is_none(), "{} twice", it.name);
        }
        Checker { file, kind, types }
    }

    /// Checks all. Returns the names of the blocks.
    pub fn program(&self) -> Vec<String> {
        let wanted: &[&str] = if self.kind == Kind::Tna {
            &["<core.p4>", "<t2na.p4>", "<tna.p4>"]
        } else {
            &["<core.p4>", "<v1model.p4>"]
        };
        assert_eq!(self.file.includes, wanted);
        self.declarations();
        for kind in &self.file.types {
            let mut names = BTreeSet::new();
            let mut all = 0;
            for (field, name) in &kind.fields {
                assert!(names.insert(name), "{}.{name} twice", kind.name);
                self.known(field);
                match field {
                    Type::Bits(width) => all += width,
                    Type::Varbit(width) => {
                        all += width;
                        assert!(self.kind == Kind::V1model, "Tofino takes no varbit: {name}");
                    }
                    _ => assert!(!kind.is_header, "{}.{name}", kind.name),
                }
            }
            assert!(!kind.is_header || all % 8 == 0, "header {} is no whole bytes", kind.name);
        }
        let main = self.file.instances.last().expect("a main package");
        assert_eq!(main.name, "main");
        let package = match self.kind {
            Kind::V1model => main,
            Kind::Tna => {
                assert_eq!(
                    (&main.kind, &main.arguments[..]),
                    (&Type::Named("Switch".to_owned(), Vec::new()), &[Expr::Name("pipe".to_owned())][..])
                );
                let pipe = self.file.instances.iter().find(|it| it.name == "pipe");
                pipe.expect("a pipe")
            }
        };
        assert_eq!(package.kind, Type::Named(self.kind.package().to_owned(), Vec::new()));
        let blocks: Vec<String> = package
            .arguments
            .iter()
            .map(|argument| match argument {
                Expr::Call(name, ..) => match name.as_ref() {
                    Expr::Name(name) => name.clone(),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(blocks.len(), self.kind.blocks().len());
        for (name, wanted) in blocks.iter().zip(self.kind.blocks()) {
            let parser = self.file.parsers.iter().find(|it| it.name == *name);
            let control = self.file.controls.iter().find(|it| it.name == *name);
            let parameters = parser.map(|it| &it.parameters).or(control.map(|it| &it.parameters)).expect(name);
            assert_eq!(parameters.len(), wanted.len(), "{name}");
            for (found, (direction, kind)) in parameters.iter().zip(wanted) {
                assert!(found.direction == *direction && is_own(&found.kind, kind), "{name}: {found:?}");
                if !found.kind_name().starts_with("packet_") {
                    self.known(&found.kind);
                }
            }
            parser.into_iter().for_each(|it| self.parser(it));
            control.into_iter().for_each(|it| self.control(it));
        }
        blocks
    }

    /// What stands at the top level has names of its own, which no include declares.
    fn declarations(&self) {
        let of_includes = self.kind.types().into_iter().map(|it| it.name);
        let mut names: BTreeSet<String> = of_includes.chain(self.kind.declared().map(str::to_owned)).collect();
        let types = self.file.types.iter().map(|it| &it.name);
        let parsers = self.file.parsers.iter().map(|it| &it.name);
        let controls = self.file.controls.iter().map(|it| &it.name);
        let instances = self.file.instances.iter().map(|it| &it.name);
        for name in types.chain(parsers).chain(controls).chain(instances) {
            assert!(names.insert(name.clone()), "{name} duplicates {name}");
        }
    }

    /// What a block gives out, other than headers, is set whichever way it goes: p4c warns where it may not be.
    fn sets_all(&self, parser: &Parser) {
        let start = parser.states.iter().find(|it| it.name == "start").expect("a start");
        for parameter in parser.parameters.iter().filter(|it| it.direction == "out") {
            let fields = &self.types[parameter.kind_name()].fields;
            for (kind, name) in fields.iter().filter(|(kind, _)| matches!(kind, Type::Bits(_))) {
                let is_it = |statement: &Statement| match statement {
                    Statement::Assign(Expr::Member(of, field), _) => {
                        field == name && **of == Expr::Name(parameter.name.clone())
                    }
                    Statement::Call(Expr::Call(_, _, arguments)) => {
                        arguments.contains(&Expr::Name(parameter.name.clone()))
                    }
                    _ => false,
                };
                let (all, of) = (start.statements.iter().any(is_it), &parameter.name);
                assert!(all, "out parameter {of} may be uninitialized: {kind:?} {name}");
            }
        }
    }

    fn known(&self, kind: &Type) {
        if let Type::Named(name, _) = kind {
            assert!(self.types.contains_key(name), "type {name}");
        }
    }

    fn scope(&self, parameters: &[Parameter], instances: &[Instance]) -> Scope {
        let mut scope = Scope::new();
        scope.insert("error".to_owned(), (Ty::Errors, false));
        if self.kind == Kind::Tna {
            scope.insert("PORT_METADATA_SIZE".to_owned(), (Ty::Number, false));
        }
        let objects = instances.iter().map(|it| (&it.name, &it.kind, false));
        for (name, kind, writable) in
            parameters.iter().map(|it| (&it.name, &it.kind, it.direction.contains("out"))).chain(objects)
        {
            assert!(scope.insert(name.clone(), (Ty::Of(kind.clone()), writable)).is_none(), "{name} twice");
        }
        scope
    }

    fn parser(&self, parser: &Parser) {
        self.sets_all(parser);
        let scope = self.scope(&parser.parameters, &parser.instances);
        let names: BTreeSet<&str> = parser.states.iter().map(|it| it.name.as_str()).collect();
        assert!(names.len() == parser.states.len() && names.contains("start"));
        for state in &parser.states {
            self.statements(&state.statements, &scope);
            let select: Vec<Ty> = state.select.iter().map(|value| self.value(value, &scope)).collect();
            for (values, next) in &state.cases {
                assert!(["accept", "reject"].contains(&next.as_str()) || names.contains(next.as_str()), "{next}");
                assert!(values.is_empty() || values.len() == select.len());
                for (value, kind) in values.iter().zip(&select) {
                    match value {
                        Expr::Any => {}
                        Expr::Masked(value, mask) => {
                            self.fits(kind, value, &scope);
                            self.fits(kind, mask, &scope);
                        }
                        value => self.fits(kind, value, &scope),
                    }
                }
            }
            if self.kind == Kind::Tna {
                let width: u32 = select.iter().map(|kind| if let Ty::Of(Type::Bits(w)) = kind { *w } else { 1 }).sum();
                assert!(width <= 32, "{} selects by {width} bits", state.name);
                for statement in &state.statements {
                    let plain = match statement {
                        Statement::Assign(_, value) => operations(value) == 0,
                        Statement::Call(_) => true,
                        Statement::If(..) => false,
                    };
                    assert!(plain, "Tofino's parsers compute nothing: {statement:?}");
                }
            }
        }
    }

    fn control(&self, control: &Control) {
        let mut scope = self.scope(&control.parameters, &control.instances);
        for instance in &control.instances {
            for function in &instance.functions {
                let mut inner = scope.clone();
                for it in &function.parameters {
                    inner.insert(it.name.clone(), (Ty::Of(it.kind.clone()), it.direction.contains("out")));
                }
                self.statements(&function.body, &inner);
                if self.kind == Kind::Tna {
                    self.register_action(function);
                }
            }
        }
        for action in &control.actions {
            let mut inner = scope.clone();
            for it in &action.parameters {
                assert!(it.direction.is_empty());
                inner.insert(it.name.clone(), (Ty::Of(it.kind.clone()), false));
            }
            self.statements(&action.body, &inner);
            if self.kind == Kind::Tna {
                self.action(action);
            }
        }
        for action in &control.actions {
            assert!(scope.insert(action.name.clone(), (Ty::Action, false)).is_none(), "{} twice", action.name);
        }
        for table in &control.tables {
            for (value, kind, _) in &table.keys {
                let known = self.value(value, &scope);
                assert!(["exact", "lpm", "range", "ternary"].contains(&kind.as_str()));
                let width = if let Ty::Of(Type::Bits(width)) = known { width } else { 1 };
                assert!(!(self.kind == Kind::Tna && kind == "range" && width > 20), "{}: a range", table.name);
            }
            assert!(table.keys.is_empty() == table.size.is_none());
            for name in table.actions.iter().chain([&table.default.0]) {
                assert!(table.actions.contains(name) && control.actions.iter().any(|it| it.name == *name), "{name}");
            }
            let default = control.actions.iter().find(|it| it.name == table.default.0).expect("the default");
            assert_eq!(default.parameters.len(), table.default.1.len(), "{}", table.name);
            for (parameter, value) in default.parameters.iter().zip(&table.default.1) {
                self.fits(&Ty::Of(parameter.kind.clone()), value, &scope);
            }
        }
        for table in &control.tables {
            assert!(scope.insert(table.name.clone(), (Ty::Table, false)).is_none(), "{} twice", table.name);
        }
        self.statements(&control.apply, &scope);
        let mut applied = BTreeMap::new();
        control.apply.iter().for_each(|it| count_applied(it, &mut applied));
        for table in &control.tables {
            assert_eq!(applied.get(&table.name), Some(&1), "{} is applied once", table.name);
        }
    }

    /// Of Tofino: one operation an assignment, each field is written once, and registers are reached once a packet.
    fn action(&self, action: &Function) {
        let mut written = Vec::new();
        for statement in &action.body {
            let (to, value) = match statement {
                Statement::Assign(to, value) => (Some(to), Some(value)),
                Statement::Call(_) => (None, None),
                Statement::If(..) => panic!("{}: a condition", action.name),
            };
            if let Some(to) = to {
                assert!(!written.contains(&to), "{}: {to:?} twice", action.name);
                written.push(to);
            }
            if let Some(value) = value {
                assert!(operations(value) <= 1, "{}: {value:?}", action.name);
            }
        }
    }

    fn register_action(&self, function: &Function) {
        let mut tests = 0;
        for statement in &function.body {
            if let Statement::If(test, ..) = statement {
                tests += operations(test) - usize::from(matches!(test, Expr::Binary(it, ..) if it == "||"));
            }
        }
        assert!(tests <= 2, "a register compares twice at most");
    }

    fn statements(&self, all: &[Statement], scope: &Scope) {
        for statement in all {
            match statement {
                Statement::Assign(to, value) => {
                    assert!(self.writable(to, scope), "{to:?} can't be written");
                    let kind = self.value(to, scope);
                    self.fits(&kind, value, scope);
                }
                Statement::Call(call) => {
                    self.value(call, scope);
                }
                Statement::If(test, yes, no) => {
                    assert_eq!(self.value(test, scope), Ty::Of(Type::Bool), "{test:?}");
                    self.statements(yes, scope);
                    self.statements(no, scope);
                }
            }
        }
    }

    fn writable(&self, to: &Expr, scope: &Scope) -> bool {
        match to {
            Expr::Member(of, _) => self.writable(of, scope),
            Expr::Name(name) => scope.get(name).is_some_and(|(_, writable)| *writable),
            _ => false,
        }
    }

    fn fits(&self, kind: &Ty, value: &Expr, scope: &Scope) {
        match (kind, self.value(value, scope)) {
            (Ty::Of(Type::Bits(width)), Ty::Number) => {
                let Expr::Number(value, _) = value else { panic!("{value:?}") };
                assert!(*width >= 128 || value >> width == 0, "{value:#x} in {width} bits");
            }
            (kind, found) => assert_eq!(*kind, found, "{value:?}"),
        }
    }

    fn value(&self, value: &Expr, scope: &Scope) -> Ty {
        match value {
            Expr::Number(_, Some(width)) => bits(*width),
            Expr::Number(_, None) => Ty::Number,
            Expr::Bool(_) => Ty::Of(Type::Bool),
            Expr::Name(name) => scope.get(name).unwrap_or_else(|| panic!("{name} is not declared")).0.clone(),
            Expr::Member(of, name) => self.member(&self.value(of, scope), name),
            Expr::Call(function, kinds, arguments) => self.call(function, kinds, arguments, scope),
            Expr::Slice(of, high, low) => {
                let Ty::Of(Type::Bits(width)) = self.value(of, scope) else { panic!("{of:?} has no bits") };
                assert!(low <= high && *high < width);
                bits(high - low + 1)
            }
            Expr::Not(of) => {
                assert_eq!(self.value(of, scope), Ty::Of(Type::Bool));
                Ty::Of(Type::Bool)
            }
            Expr::Cast(kind, of) => {
                let known = self.value(of, scope);
                assert!(matches!(known, Ty::Of(Type::Bits(_)) | Ty::Number), "{of:?}");
                Ty::Of(kind.clone())
            }
            Expr::Choice(test, yes, no) => {
                assert!(self.kind == Kind::V1model, "Tofino chooses by tables: {value:?}");
                assert_eq!(self.value(test, scope), Ty::Of(Type::Bool));
                let kind = self.value(yes, scope);
                self.fits(&kind, no, scope);
                kind
            }
            Expr::List(all) => Ty::List(all.iter().map(|it| self.value(it, scope)).collect()),
            Expr::Binary(operator, left, right) => self.binary(operator, left, right, scope),
            Expr::Masked(..) | Expr::Any => panic!("{value:?} outside of a selection"),
        }
    }

    fn binary(&self, operator: &str, left: &Expr, right: &Expr, scope: &Scope) -> Ty {
        let kind = match (self.value(left, scope), self.value(right, scope)) {
            (Ty::Number, right) => right,
            (left, _) => left,
        };
        let same = || {
            self.fits(&kind, left, scope);
            self.fits(&kind, right, scope);
        };
        match operator {
            "&&" | "||" => {
                same();
                assert_eq!(kind, Ty::Of(Type::Bool));
                kind
            }
            "==" | "!=" => {
                same();
                Ty::Of(Type::Bool)
            }
            "<" | ">" | "<=" | ">=" => {
                same();
                assert!(matches!(kind, Ty::Of(Type::Bits(_))));
                Ty::Of(Type::Bool)
            }
            "<<" | ">>" => self.value(left, scope),
            "+" | "-" | "|+|" | "&" | "|" | "^" | "*" => {
                same();
                let Ty::Of(Type::Bits(width)) = kind else { panic!("{left:?} {operator} {right:?}") };
                let logic = ["&", "|", "^"].contains(&operator);
                assert!(self.kind == Kind::V1model || logic || (operator != "*" && width <= 64), "{operator}");
                kind
            }
            // P4 divides constants only.
            _ => panic!("operator {operator}"),
        }
    }

    fn member(&self, of: &Ty, name: &str) -> Ty {
        match of {
            Ty::Errors => {
                assert!(["NoError", "PacketTooShort"].contains(&name));
                Ty::Of(Type::Error)
            }
            Ty::Applied => {
                assert!(["hit", "miss"].contains(&name));
                Ty::Of(Type::Bool)
            }
            _ => {
                let (kind, _) = named(of).unwrap_or_else(|| panic!("{of:?} has no {name}"));
                let fields = &self.types.get(kind).unwrap_or_else(|| panic!("type {kind}")).fields;
                let found = fields.iter().find(|(_, field)| field == name);
                Ty::Of(found.unwrap_or_else(|| panic!("{kind} has no {name}")).0.clone())
            }
        }
    }

    fn call(&self, function: &Expr, kinds: &[Type], arguments: &[Expr], scope: &Scope) -> Ty {
        let void = Ty::Of(Type::Void);
        let Expr::Member(of, method) = function else {
            let Expr::Name(name) = function else { panic!("{function:?}") };
            match (name.as_str(), self.kind) {
                ("mark_to_drop", Kind::V1model) => {
                    let [argument] = arguments else { panic!("{arguments:?}") };
                    let known = self.value(argument, scope);
                    assert_eq!(named(&known).map(|it| it.0), Some("standard_metadata_t"));
                }
                ("update_checksum", Kind::V1model) => {
                    let [test, data, to, algorithm] = arguments else { panic!("{arguments:?}") };
                    assert_eq!(self.value(test, scope), Ty::Of(Type::Bool));
                    assert!(matches!(self.value(data, scope), Ty::List(_)));
                    assert_eq!(self.value(to, scope), bits(16));
                    let csum16 = Expr::Member(Box::new(Expr::Name("HashAlgorithm".to_owned())), "csum16".to_owned());
                    assert_eq!(*algorithm, csum16);
                }
                // An action.
                _ => {
                    assert_eq!((self.value(function, scope), arguments.len()), (Ty::Action, 0), "{name}");
                }
            }
            return void;
        };
        let object = self.value(of, scope);
        if object == Ty::Table {
            assert!(method == "apply" && arguments.is_empty());
            return Ty::Applied;
        }
        let (kind, parameters) = named(&object).unwrap_or_else(|| panic!("{object:?}.{method}"));
        if self.types.get(kind).is_some_and(|it| it.is_header) {
            assert!(arguments.is_empty());
            return match method.as_str() {
                "isValid" => Ty::Of(Type::Bool),
                "setValid" | "setInvalid" => void,
                _ => panic!("{kind}.{method}"),
            };
        }
        match (kind, method.as_str(), arguments) {
            ("packet_in", "extract", [header]) => {
                let known = self.value(header, scope);
                let fields = &self.types[named(&known).expect("a header").0];
                assert!(fields.is_header && fields.fields.iter().all(|(kind, _)| matches!(kind, Type::Bits(_))));
                void
            }
            ("packet_in", "extract", [header, length]) => {
                let known = self.value(header, scope);
                let fields = &self.types[named(&known).expect("a header").0];
                assert!(matches!(fields.fields[..], [(Type::Varbit(_), _)]));
                assert!(self.value(length, scope) == bits(32));
                void
            }
            ("packet_in", "advance", [length]) => {
                assert_eq!(self.value(length, scope), Ty::Number);
                void
            }
            ("packet_in", "lookahead", []) => Ty::Of(kinds[0].clone()),
            ("packet_out", "emit", [header]) => {
                assert!(named(&self.value(header, scope)).is_some_and(|(name, _)| self.types.contains_key(name)));
                void
            }
            ("register", "read", [to, index]) => {
                assert!(self.writable(to, scope));
                assert_eq!(self.value(to, scope), Ty::Of(parameters[0].clone()));
                assert_eq!(self.value(index, scope), Ty::Number);
                void
            }
            ("register", "write", [index, value]) => {
                assert_eq!(self.value(index, scope), Ty::Number);
                self.fits(&Ty::Of(parameters[0].clone()), value, scope);
                void
            }
            ("RegisterAction", "execute", [index]) => {
                self.fits(&Ty::Of(parameters[1].clone()), index, scope);
                Ty::Of(parameters[2].clone())
            }
            ("Checksum", "update", [Expr::List(_)]) => bits(16),
            ("ParserCounter", "set" | "decrement", [value]) => {
                self.fits(&bits(8), value, scope);
                void
            }
            ("ParserCounter", "is_zero", []) => Ty::Of(Type::Bool),
            _ => panic!("{kind}.{method}({arguments:?})"),
        }
    }
}

impl Parameter {
    pub fn kind_name(&self) -> &str {
        if let Type::Named(name, _) = &self.kind { name } else { "" }
    }
}

/// How many operations a value takes; casts and bits of values take none.
fn operations(value: &Expr) -> usize {
    match value {
        Expr::Binary(_, left, right) => 1 + operations(left) + operations(right),
        Expr::Choice(test, yes, no) => 1 + operations(test) + operations(yes) + operations(no),
        Expr::Cast(_, of) | Expr::Slice(of, ..) | Expr::Not(of) => operations(of),
        _ => 0,
    }
}

fn count_applied(statement: &Statement, applied: &mut BTreeMap<String, usize>) {
    fn of_value(value: &Expr, applied: &mut BTreeMap<String, usize>) {
        match value {
            Expr::Call(function, ..) => {
                if let Expr::Member(of, method) = function.as_ref()
                    && let (Expr::Name(name), "apply") = (of.as_ref(), method.as_str())
                {
                    *applied.entry(name.clone()).or_default() += 1;
                }
            }
            Expr::Member(of, _) | Expr::Not(of) => of_value(of, applied),
            _ => {}
        }
    }
    match statement {
        Statement::Call(value) => of_value(value, applied),
        Statement::Assign(..) => {}
        Statement::If(test, yes, no) => {
            of_value(test, applied);
            yes.iter().chain(no).for_each(|it| count_applied(it, applied));
        }
    }
}
