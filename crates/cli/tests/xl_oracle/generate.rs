//! Programs and inputs out of a list of numbers: each choice takes the next one, and 0 when there are no more. The first
//! possibility of each choice is the simplest, so a shorter list of smaller numbers makes a smaller program.

use crate::tree::*;

pub struct Choices<'a> {
    numbers: std::slice::Iter<'a, u16>,
    locals: usize,
}

/// What is allowed where a statement stands.
#[derive(Clone)]
struct Place {
    /// `packet` may be named.
    packet: bool,
    /// `packet.port` is known.
    port: bool,
    /// The timer `pair` is being handled.
    carried: bool,
    /// States that `goto` may name: from this one on.
    goto: usize,
    delete: bool,
    /// Actions that may be called: those numbered from this one on.
    actions: usize,
    locals: Vec<(String, Type)>,
    /// How many more levels of blocks there may be.
    depth: usize,
}

/// Parameters; they have names of registers, which they hide.
const PARAMETERS: [&[(&str, Kind)]; 2] =
    [&[("e", Kind::Seq32), ("a", Kind::U8)], &[("c", Kind::I64), ("k", Kind::Bool)]];

impl<'a> Choices<'a> {
    pub fn new(numbers: &'a [u16]) -> Choices<'a> {
        Choices { numbers: numbers.iter(), locals: 0 }
    }

    /// A number below `count`.
    pub fn pick(&mut self, count: usize) -> usize {
        usize::from(self.numbers.next().copied().unwrap_or(0)) % count
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.pick(count) == count - 1
    }

    pub fn program(&mut self) -> Program {
        let nowhere = Place {
            packet: false,
            port: false,
            carried: false,
            goto: STATES.len(),
            delete: false,
            actions: 2,
            locals: Vec::new(),
            depth: 3,
        };
        // A condition sees registers and slots, never its user's locals.
        let conditions = (0..2).map(|_| self.test(&nowhere, 2)).collect();
        let actions = PARAMETERS.iter().enumerate().map(|(index, parameters)| {
            let local = |(name, kind): &(&str, Kind)| ((*name).to_string(), kind.values());
            let locals = parameters.iter().map(local).collect();
            let place = match index {
                0 => Place { packet: true, goto: 0, delete: true, actions: 1, locals, ..nowhere.clone() },
                _ => Place { locals, ..nowhere.clone() },
            };
            Action { parameters: parameters.to_vec(), body: self.block(&place) }
        });
        let actions = actions.collect();
        let taken = vec![(TAKEN.0.to_string(), TAKEN.1.values())];
        let modules = MODULES.map(|_| self.block(&Place { locals: taken.clone(), ..nowhere.clone() })).into();
        let entry = |state: usize| Place { packet: true, goto: state + 1, actions: 1, ..nowhere.clone() };
        let mut states = vec![State::default(); STATES.len()];
        for (index, state) in states.iter_mut().enumerate() {
            for event in [Event::Packet, Event::Timer(0), Event::Timer(1), Event::Turn, Event::Expire] {
                let packet = event == Event::Packet;
                let place = Place {
                    packet,
                    port: packet,
                    carried: event == Event::Timer(1),
                    goto: 0,
                    delete: true,
                    actions: usize::from(!packet),
                    ..nowhere.clone()
                };
                // The unguarded handler comes first out of the numbers: it is the simplest.
                let last = Handler { event, from: None, when: None, body: self.block(&place) };
                for _ in 0..self.pick(3) {
                    let from = (packet && self.one_in(3)).then(|| 1 + self.pick(2) as u16);
                    let when = (from.is_none() || self.one_in(2)).then(|| self.condition(&place, 2));
                    state.handlers.push(Handler { event, from, when, body: self.block(&place) });
                }
                if !last.body.is_empty() {
                    state.handlers.push(last);
                }
            }
            state.enter = self.block(&entry(index));
            state.exit = self.block(&Place { goto: STATES.len(), ..entry(index) });
            state.expire = [None, Some(4_000_000), Some(0), Some(9_000_000)][self.pick(4)];
        }
        Program { rules: self.rules(), conditions, actions, modules, states }
    }

    fn rules(&mut self) -> Rules {
        let expire = [36_000_000_000_000, 5_000_000, 2_500_000, 0][self.pick(4)];
        let (hold, max) = (self.pick(2) == 1, [10, 1, 2, 3][self.pick(4)]);
        let when_full = match self.pick(4) {
            0 => WhenFull::EvictOldest,
            1 => WhenFull::Reject,
            _ => WhenFull::EvictIn((0..1 + self.pick(3)).map(|_| self.group()).collect()),
        };
        Rules { expire, hold, max, when_full }
    }

    fn group(&mut self) -> Group {
        let first = self.pick(STATES.len());
        let last = first + self.pick(STATES.len() - first);
        let idle = [0, 2_000_000, 6_000_000][self.pick(3)];
        Group { states: (first..=last).collect(), idle, above: self.pick(3) }
    }

    fn block(&mut self, place: &Place) -> Vec<Statement> {
        let mut place = place.clone();
        let count = self.pick(5);
        (0..count).map(|_| self.statement(&mut place)).collect()
    }

    fn statement(&mut self, place: &mut Place) -> Statement {
        match self.pick(25) {
            1..=3 => self.assign(place),
            4..=7 if place.depth > 0 => self.conditional(place),
            8 if place.goto < STATES.len() => Statement::Goto(place.goto + self.pick(STATES.len() - place.goto)),
            9 | 10 => self.let_local(place),
            11 => self.set_field(place),
            12 if place.actions < PARAMETERS.len() => {
                let action = place.actions + self.pick(PARAMETERS.len() - place.actions);
                let kinds = PARAMETERS[action];
                Statement::Call(action, kinds.iter().map(|(_, kind)| self.for_kind(*kind, place)).collect())
            }
            13 => self.set_timer(place),
            14 => self.cancel(place),
            15 => {
                let packet = self.packet(place);
                let port = if self.one_in(3) { self.value(Type::Integer, place, 1) } else { Expression::Plain(2) };
                Statement::Send(packet, port)
            }
            16 => Statement::Store(self.packet(place), self.pick(SLOTS.len())),
            17 => match self.pick(4) {
                0 => Statement::Discard(self.pick(SLOTS.len())),
                1 => Statement::Reverse(self.packet_name(place)),
                2 => {
                    // Not so long that it would be refused only sometimes.
                    let length = self.value(Type::Integer, place, 1);
                    let cut = Expression::Binary(
                        Operator::And,
                        Type::Integer,
                        Box::new(length),
                        Type::Integer,
                        Box::new(Expression::Plain(63)),
                    );
                    Statement::Resize(self.packet_name(place), cut)
                }
                _ => Statement::KeepOptions(self.packet_name(place), [2, 8][self.pick(2)]),
            },
            18 if place.delete && self.one_in(3) => Statement::Delete,
            20 | 21 => {
                let cost = match self.pick(4) {
                    3 => self.divisor(Type::Time),
                    choice => Expression::Constant(Type::Time, [1_000_000, 1, 2_500_000][choice]),
                };
                Statement::Ask(self.value(Type::Integer, place, 1), cost)
            }
            22 if self.one_in(3) => Statement::Withdraw,
            23 => {
                let index = self.value(Type::Integer, place, 1);
                if self.one_in(3) {
                    return Statement::SetElement(index, self.value(Type::Integer, place, 1), true);
                }
                Statement::SetElement(index, self.for_kind(ARRAY.1, place), false)
            }
            24 if place.actions < PARAMETERS.len() => match self.pick(3) {
                0 => Statement::Choose(self.pick(MODULES.len())),
                _ => Statement::Step(self.for_kind(TAKEN.1, place)),
            },
            _ => {
                let kind = Kind::ALL[self.pick(Kind::ALL.len())];
                Statement::Notify(self.pick(NOTICES.len()), self.value(kind.values(), place, 3))
            }
        }
    }

    fn assign(&mut self, place: &Place) -> Statement {
        let hidden = |index: usize| place.locals.iter().any(|(name, _)| *name == REGISTERS[index].0);
        let mut register = self.pick(REGISTERS.len());
        while hidden(register) {
            register = (register + 1) % REGISTERS.len();
        }
        let kind = REGISTERS[register].1;
        if self.one_in(4) && !matches!(kind, Kind::Bool) {
            let type_ = if kind == Kind::Time { Type::Time } else { Type::Integer };
            return Statement::Increase(register, self.value(type_, place, 2));
        }
        Statement::Assign(register, self.for_kind(kind, place))
    }

    /// A value for a place of this kind: numbers of every type fit, but not a bare number that is too great.
    fn for_kind(&mut self, kind: Kind, place: &Place) -> Expression {
        let type_ = match kind.values() {
            Type::Integer | Type::Unsigned | Type::Sequence => {
                [kind.values(), Type::Integer, Type::Unsigned, Type::Sequence][self.pick(4)]
            }
            other => other,
        };
        let value = self.value(type_, place, 3);
        if value.is_literal() { Expression::Cast(kind, Box::new(value)) } else { value }
    }

    fn conditional(&mut self, place: &Place) -> Statement {
        let inner = Place { depth: place.depth - 1, ..place.clone() };
        let count = 1 + self.pick(3);
        let branches = (0..count).map(|_| (self.condition(place, 2), self.block(&inner))).collect();
        Statement::If(branches, self.block(&inner))
    }

    fn let_local(&mut self, place: &mut Place) -> Statement {
        let kind = Kind::ALL[self.pick(Kind::ALL.len())];
        let typed = self.one_in(2);
        let value = if typed { self.for_kind(kind, place) } else { self.value(kind.values(), place, 3) };
        // A bare number is an integer once it has a name.
        let value = match value.is_literal() {
            true if !typed => Expression::Cast(kind, Box::new(value)),
            _ => value,
        };
        let name = format!("x{}", self.locals);
        self.locals += 1;
        place.locals.push((name.clone(), kind.values()));
        Statement::Let(name, typed.then_some(kind), value)
    }

    fn set_field(&mut self, place: &Place) -> Statement {
        let (packet, field) = (self.packet_name(place), self.pick(FIELDS.len()));
        let value = self.value(FIELDS[field].2, place, 2);
        Statement::SetField(packet, field, value, self.one_in(2))
    }

    fn set_timer(&mut self, place: &Place) -> Statement {
        let timer = self.pick(TIMERS.len());
        let carried = TIMERS[timer].1.iter().map(|(_, kind)| self.for_kind(*kind, place)).collect();
        // At least a millisecond, so that no program keeps an instant from passing.
        let least = Box::new(Expression::Constant(Type::Time, 1_000_000));
        let delay = match self.pick(3) {
            0 => Expression::Constant(Type::Time, 1_000_000 * (1 + self.pick(5) as i64)),
            _ => Expression::Least(false, Type::Time, Box::new(self.value(Type::Time, place, 2)), least),
        };
        Statement::Set(timer, carried, delay, self.one_in(3))
    }

    fn cancel(&mut self, place: &Place) -> Statement {
        let timer = self.pick(TIMERS.len());
        let count = if TIMERS[timer].1.is_empty() { 0 } else { self.pick(3) };
        let tests = (0..count).map(|_| {
            let index = self.pick(2);
            let type_ = if index == 0 && self.one_in(2) { Type::Sequence } else { Type::Integer };
            (index, self.comparison(), self.value(type_, place, 1))
        });
        Statement::Cancel(timer, tests.collect())
    }

    fn packet_name(&mut self, place: &Place) -> PacketName {
        match self.pick(SLOTS.len() + 1) {
            0 if place.packet => PacketName::Current,
            0 => PacketName::Slot(0),
            slot => PacketName::Slot(slot - 1),
        }
    }

    fn packet(&mut self, place: &Place) -> Packet {
        if !self.one_in(3) {
            return Packet::Named(self.packet_name(place));
        }
        let template = self.pick(TEMPLATES.len());
        let count = self.pick(3);
        let fields = (0..count).map(|_| {
            let field = self.pick(FIELDS.len());
            (field, self.value(FIELDS[field].2, place, 2))
        });
        Packet::Template(template, fields.collect())
    }

    /// A condition, which may be a named one.
    fn condition(&mut self, place: &Place, depth: usize) -> Expression {
        if self.one_in(8) { Expression::Named(self.pick(2)) } else { self.test(place, depth) }
    }

    fn comparison(&mut self) -> Comparison {
        use Comparison::*;
        [Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual][self.pick(6)]
    }

    fn test(&mut self, place: &Place, depth: usize) -> Expression {
        let sub = |choices: &mut Self| Box::new(choices.condition_or_leaf(place, depth));
        match self.pick(8) {
            3 => Expression::And(sub(self), sub(self)),
            4 => Expression::Or(sub(self), sub(self)),
            5 => Expression::Not(sub(self)),
            6 => self.leaf(Type::Bool, place),
            7 if self.one_in(2) => self.address_test(place),
            choice => {
                let type_ = [Type::Integer, Type::Sequence, Type::Unsigned, Type::Time][self.pick(4)];
                let comparison = self.comparison();
                let left = Box::new(self.value(type_, place, 1));
                let right = match (type_, choice) {
                    (Type::Sequence, 1 | 2) => self.value(Type::Integer, place, 1),
                    (Type::Unsigned, 1) => Expression::Plain(self.pick(9) as i64),
                    _ => self.value(type_, place, 1),
                };
                Expression::Compare(comparison, type_, left, Box::new(right))
            }
        }
    }

    fn address_test(&mut self, place: &Place) -> Expression {
        let kind = [Address::Ipv4, Address::Mac][self.pick(2)];
        let value = Box::new(self.address(kind, place, 2));
        if self.one_in(2) {
            return Expression::SameAddress(self.pick(2) == 0, value, Box::new(self.address(kind, place, 1)));
        }
        let top = 1 << (kind.bits() - 1);
        let prefixes = [(0, 0), (0, 24), (10 << (kind.bits() - 8), 8), (300, kind.bits()), (top, 1)];
        let (prefix, bits) = prefixes[self.pick(5)];
        Expression::Prefix(value, kind, prefix, bits)
    }

    fn address(&mut self, kind: Address, place: &Place, depth: usize) -> Expression {
        match self.pick(3) {
            1 if depth > 0 => {
                let mut side = || Box::new(self.address(kind, place, depth - 1));
                Expression::Masked(side(), side())
            }
            2 => {
                let all = u64::MAX >> (64 - kind.bits());
                Expression::AddressLiteral(kind, [0, all, 300, all - 255, 10 << (kind.bits() - 8)][self.pick(5)])
            }
            _ => {
                let from = [Type::Integer, Type::Unsigned][self.pick(2)];
                Expression::AddressCast(kind, Box::new(self.value(from, place, 1)))
            }
        }
    }

    fn condition_or_leaf(&mut self, place: &Place, depth: usize) -> Expression {
        if depth == 0 { self.leaf(Type::Bool, place) } else { self.test(place, depth - 1) }
    }

    /// A value of a type.
    fn value(&mut self, type_: Type, place: &Place, depth: usize) -> Expression {
        if depth == 0 || self.pick(2) == 0 {
            return self.leaf(type_, place);
        }
        let depth = depth - 1;
        if type_ == Type::Bool {
            return if self.one_in(8) { Expression::Named(self.pick(2)) } else { self.test(place, depth) };
        }
        if self.one_in(6) {
            let (left, right) = (self.value(type_, place, depth), self.value(type_, place, depth));
            return Expression::Least(self.one_in(2), type_, Box::new(left), Box::new(right));
        }
        if self.one_in(6) {
            return self.converted(type_, place, depth);
        }
        self.arithmetic(type_, place, depth)
    }

    /// A value of another type, converted.
    fn converted(&mut self, type_: Type, place: &Place, depth: usize) -> Expression {
        let from = [Type::Integer, Type::Unsigned, Type::Sequence, Type::Bool, Type::Time][self.pick(5)];
        let inner = Box::new(self.value(from, place, depth));
        let kind = match type_ {
            Type::Integer => match self.pick(8) {
                6 | 7 => return Expression::Element(Box::new(self.value(Type::Integer, place, depth))),
                0 => return Expression::Table(Box::new(self.value(Type::Integer, place, depth))),
                1 if from == Type::Time => return Expression::Count("milliseconds", 1_000_000, inner),
                2 if from == Type::Time => return Expression::Count("nanoseconds", 1, inner),
                3 if from == Type::Integer => return Expression::Complement(inner),
                other => [Kind::I64, Kind::U8, Kind::U16, Kind::U32][other % 4],
            },
            Type::Unsigned if self.one_in(3) => {
                let bytes = Box::new(self.value(Type::Integer, place, depth));
                return Expression::Speed(bytes, Box::new(self.divisor(Type::Time)));
            }
            Type::Unsigned => Kind::U64,
            Type::Sequence => Kind::Seq32,
            Type::Time => Kind::Time,
            Type::Bool => Kind::Bool,
        };
        Expression::Cast(kind, inner)
    }

    fn arithmetic(&mut self, type_: Type, place: &Place, depth: usize) -> Expression {
        use Operator::*;
        const ANY: [Operator; 10] = [Add, Subtract, Multiply, And, Or, Xor, ShiftLeft, ShiftRight, Divide, Remainder];
        let (left, operator, right) = match type_ {
            Type::Integer => match self.pick(8) {
                5 => (Type::Sequence, Subtract, Type::Sequence),
                6 => (Type::Sequence, [And, Or, Xor, ShiftLeft, ShiftRight, Remainder][self.pick(6)], Type::Integer),
                7 => (Type::Time, Divide, Type::Time),
                _ => (Type::Integer, ANY[self.pick(10)], Type::Integer),
            },
            Type::Unsigned => match self.pick(3) {
                0 => (Type::Unsigned, ANY[self.pick(8)], Type::Integer),
                1 => (Type::Integer, ANY[self.pick(6)], Type::Unsigned),
                _ => (Type::Unsigned, ANY[self.pick(10)], Type::Unsigned),
            },
            Type::Sequence => match self.pick(3) {
                0 => (Type::Sequence, Add, Type::Integer),
                1 => (Type::Sequence, Subtract, Type::Integer),
                _ => (Type::Integer, Add, Type::Sequence),
            },
            _ => match self.pick(4) {
                0 => (Type::Time, [Add, Subtract, Remainder][self.pick(3)], Type::Time),
                1 => (Type::Integer, Multiply, Type::Time),
                _ => (Type::Time, [Multiply, Divide, ShiftLeft, ShiftRight][self.pick(4)], Type::Integer),
            },
        };
        let first = Box::new(self.value(left, place, depth));
        let second = match operator {
            // A division by what the compiler knows to be 0 is an error.
            Divide | Remainder => self.divisor(right),
            ShiftLeft | ShiftRight if self.one_in(2) => Expression::Plain(self.pick(70) as i64),
            _ => self.value(right, place, depth),
        };
        Expression::Binary(operator, left, first, right, Box::new(second))
    }

    fn divisor(&mut self, type_: Type) -> Expression {
        let value = 1 + self.pick(9) as i64;
        match self.pick(3) {
            0 => Expression::Constant(type_, value),
            _ => {
                let one = Expression::Constant(type_, value);
                let (name, found) = match type_ {
                    Type::Time => (Kind::Time, "t"),
                    Type::Unsigned => (Kind::U64, "d"),
                    _ => (Kind::I64, "h"),
                };
                let register = REGISTERS.iter().position(|(name, ..)| *name == found);
                register.map_or(one, |register| Expression::Cast(name, Box::new(Expression::Register(register))))
            }
        }
    }

    fn leaf(&mut self, type_: Type, place: &Place) -> Expression {
        let hidden = |name: &str| place.locals.iter().any(|(local, _)| local == name);
        let mut found: Vec<Expression> = vec![match type_ {
            Type::Integer => Expression::Plain([0, 1, 2, 5, -1, 300, 65_537, 0x1_0000_0000][self.pick(8)]),
            Type::Unsigned => Expression::Constant(type_, [0, 1, 7, -1, i64::MIN][self.pick(5)]),
            Type::Sequence => Expression::Constant(type_, [0, 1, 5, 0xffff_ffff, 0x8000_0000][self.pick(5)]),
            Type::Time => Expression::Constant(type_, [0, 1, 1_000_000, 2_500_000][self.pick(4)]),
            Type::Bool => Expression::Constant(type_, self.pick(2) as i64),
        }];
        for (index, (name, kind, _)) in REGISTERS.iter().enumerate() {
            if kind.values() == type_ && !hidden(name) {
                found.push(Expression::Register(index));
            }
        }
        let locals = place.locals.iter().filter(|(_, known)| *known == type_);
        // Twice as likely as others: what locals are kept in is most easily mixed up.
        for (name, _) in locals.clone().chain(locals) {
            found.push(Expression::Local(name.clone()));
        }
        if place.carried && matches!(type_, Type::Sequence | Type::Integer) {
            found.push(Expression::Carried(usize::from(type_ == Type::Integer)));
        }
        if type_ == Type::Time {
            found.push(Expression::Now);
        }
        match type_ {
            Type::Integer => found.push(Expression::Tally(self.pick(TALLIES.len()))),
            Type::Bool => found.push(Expression::Waiting),
            _ => {}
        }
        if type_ == Type::Integer && place.port {
            found.push(Expression::Port);
        }
        let field = self.pick(FIELDS.len());
        let packet = self.packet_name(place);
        if FIELDS[field].2 == type_ {
            found.push(Expression::Field(packet, field));
            found.push(Expression::Field(packet, field));
        } else if type_ == Type::Bool {
            found.push(Expression::Present(packet, field));
        }
        let index = self.pick(found.len());
        found.swap_remove(index)
    }
}
