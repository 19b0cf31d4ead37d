//! The meaning of the tree, as anyone would read the program: statement after statement. Values and events are as the
//! semantics page says; its sections are named. Nothing here is shared with the compiler or the engine; packets are
//! the core's, which has an oracle of its own.

use crate::tree::*;
use std::collections::BTreeMap;
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::format::{FieldPlace, Formats};
use weftwire_core::{DropReason, Endpoints, LinkType, Packet as Frame};

/// What can be seen from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    Notice { at: i64, flow: u64, name: String, value: i64 },
    Sent { at: i64, port: i64, bytes: Vec<u8> },
    Ended { flow: u64 },
}

/// A pending setting of a timer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Setting {
    pub due: i64,
    /// When it was set, among all settings.
    pub order: u64,
    pub timer: usize,
    pub carried: Vec<i64>,
}

#[derive(Clone, Debug)]
pub struct Flow {
    pub state: usize,
    pub registers: Vec<i64>,
    pub array: Vec<i64>,
    pub chosen: usize,
    /// Of each module.
    pub own: Vec<i64>,
    pub slots: Vec<Option<Frame>>,
    pub timers: Vec<Setting>,
    /// Its last packet: when, and which of all.
    active: (i64, u64),
    ends: Option<Endpoints>,
}

pub struct Interpreter<'a> {
    program: &'a Program,
    formats: Formats,
    places: Vec<FieldPlace>,
    /// By flow id.
    pub flows: BTreeMap<u64, Flow>,
    /// Flow ids by client.
    clients: BTreeMap<usize, u64>,
    created: u64,
    arrivals: u64,
    settings: u64,
    /// Who waits: rank, number, flow and cost.
    queue: Vec<(i64, u64, u64, i64)>,
    requests: u64,
    /// No turn comes before.
    next_turn: i64,
    pub seen: Vec<Seen>,
    pub drops: BTreeMap<&'static str, u64>,
}

/// An event while it is handled.
struct Run<'a, 'b> {
    machine: &'b mut Interpreter<'a>,
    id: u64,
    flow: Flow,
    at: i64,
    port: i64,
    current: Option<Frame>,
    carried: Vec<i64>,
    locals: Vec<(String, i64)>,
    goto: Option<usize>,
    deleted: bool,
}

impl<'a> Interpreter<'a> {
    pub fn new(program: &'a Program) -> Interpreter<'a> {
        let formats = Formats::default();
        let places = FIELDS.iter().map(|(format, field, _)| formats.field(format, field).expect("a field of the core"));
        Interpreter {
            program,
            places: places.collect(),
            formats,
            flows: BTreeMap::new(),
            clients: BTreeMap::new(),
            created: 0,
            arrivals: 0,
            settings: 0,
            queue: Vec::new(),
            requests: 0,
            next_turn: 0,
            seen: Vec::new(),
            drops: BTreeMap::new(),
        }
    }

    /// A client's packet arrives; timers that were due before it fire first (4.1).
    pub fn packet(&mut self, at: i64, client: usize, port: u16, packet: Frame) {
        self.fire(at - 1);
        let known = self.clients.get(&client).and_then(|id| Some((*id, self.flows.remove(id)?)));
        let fresh = known.is_none();
        if fresh && self.is_full() && self.victim(at).is_none() {
            *self.drops.entry(DropReason::TableFull.name()).or_default() += 1;
            return;
        }
        let (id, flow) = known.unwrap_or_else(|| {
            self.created += 1;
            self.clients.insert(client, self.created);
            let flow = Flow {
                state: 0,
                registers: REGISTERS.iter().map(|(_, _, initial)| *initial).collect(),
                array: vec![ARRAY.3; ARRAY.2],
                chosen: 0,
                own: MODULES.iter().map(|(_, initial)| *initial).collect(),
                slots: vec![None; SLOTS.len()],
                timers: Vec::new(),
                active: (at, 0),
                ends: packet.endpoints(),
            };
            (self.created, flow)
        });
        self.arrivals += 1;
        let flow = Flow { active: (at, self.arrivals), ..flow };
        let mut run = Run {
            machine: self,
            id,
            flow,
            at,
            port: i64::from(port),
            current: Some(packet),
            carried: Vec::new(),
            locals: Vec::new(),
            goto: None,
            deleted: false,
        };
        // 3.3
        if fresh {
            run.enter();
            run.change_state();
        }
        if !run.deleted {
            run.handle(Event::Packet);
        }
        if fresh && !run.deleted {
            run.machine.make_room(at);
        }
        run.finish();
    }

    fn is_full(&self) -> bool {
        self.flows.len() >= self.program.rules.max
    }

    /// 3.3 and 3.4
    fn victim(&self, at: i64) -> Option<u64> {
        let oldest = |states: &dyn Fn(usize) -> bool| {
            let members = self.flows.iter().filter(|(_, flow)| states(flow.state));
            let oldest = members.clone().map(|(id, flow)| (flow.active, *id)).min();
            (members.count(), oldest)
        };
        match &self.program.rules.when_full {
            WhenFull::EvictOldest => oldest(&|_| true).1.map(|(_, id)| id),
            WhenFull::Reject => None,
            WhenFull::EvictIn(groups) => groups.iter().find_map(|group| {
                let (count, oldest) = oldest(&|state| group.states.contains(&state));
                let (active, id) = oldest?;
                (count > group.above && at - active.0 >= group.idle).then_some(id)
            }),
        }
    }

    fn make_room(&mut self, at: i64) {
        if self.is_full()
            && let Some(victim) = self.victim(at)
        {
            self.flows.remove(&victim);
            self.leave(victim);
            self.seen.push(Seen::Ended { flow: victim });
        }
    }

    fn waits(&self, id: u64) -> bool {
        self.queue.iter().any(|waiting| waiting.2 == id)
    }

    fn leave(&mut self, id: u64) {
        self.queue.retain(|waiting| waiting.2 != id);
    }

    /// When a flow expires, if nothing happens.
    fn expiry(&self, id: u64, flow: &Flow) -> Option<i64> {
        let own = self.program.states[flow.state].expire;
        let waits = !flow.timers.is_empty() || self.waits(id);
        let held = own.is_none() && self.program.rules.hold && waits;
        Some(own.unwrap_or(self.program.rules.expire))
            .filter(|idle| *idle > 0 && !held)
            .map(|idle| flow.active.0 + idle)
    }

    fn expire(&mut self, at: i64, id: u64) {
        let flow = self.flows.remove(&id).expect("it was just found");
        let mut run = Run {
            machine: self,
            id,
            flow,
            at,
            port: 0,
            current: None,
            carried: Vec::new(),
            locals: Vec::new(),
            goto: None,
            deleted: false,
        };
        run.handle(Event::Expire);
        run.deleted = true;
        run.finish();
    }

    /// Fires all that is due up to an instant: by time, timers in the order in which they were set, then turns, then expiries (4.1).
    pub fn fire(&mut self, until: i64) {
        loop {
            let expiries = self.flows.iter().filter_map(|(id, flow)| Some((self.expiry(*id, flow)?, flow.active, *id)));
            let expiry = expiries.filter(|(at, ..)| *at <= until).min().map(|(at, _, id)| (at, 2, id));
            let turn = self.queue.iter().min().map(|first| (self.next_turn, 1, first.2));
            let all = self.flows.iter().flat_map(|(id, flow)| flow.timers.iter().map(move |setting| (setting, *id)));
            let timer = all.filter(|(setting, _)| setting.due <= until).min();
            let firsts =
                [timer.map(|(setting, id)| (setting.due, 0, id)), turn.filter(|(at, ..)| *at <= until), expiry];
            let setting = timer.map(|(setting, _)| setting.clone());
            let (setting, id) = match (firsts.into_iter().flatten().min_by_key(|(at, kind, _)| (*at, *kind)), setting) {
                (Some((_, 0, id)), Some(setting)) => (setting, id),
                (Some((at, 1, id)), _) => {
                    self.turn(at, id);
                    continue;
                }
                (Some((at, _, id)), _) => {
                    self.expire(at, id);
                    continue;
                }
                (None, _) => return,
            };
            let at = setting.due;
            let mut flow = self.flows.remove(&id).expect("it was just found");
            flow.timers.retain(|other| *other != setting);
            let mut run = Run {
                machine: self,
                id,
                flow,
                at: setting.due,
                port: 0,
                current: None,
                carried: setting.carried,
                locals: Vec::new(),
                goto: None,
                deleted: false,
            };
            run.handle(Event::Timer(setting.timer));
            run.finish();
            self.expire_overdue(at, id);
        }
    }

    fn expire_overdue(&mut self, at: i64, id: u64) {
        if self.flows.get(&id).and_then(|flow| self.expiry(id, flow)).is_some_and(|due| due < at) {
            self.expire(at, id);
        }
    }

    fn turn(&mut self, at: i64, id: u64) {
        let cost = self.queue.iter().find(|waiting| waiting.2 == id).expect("it waits").3;
        self.leave(id);
        self.next_turn = at + cost;
        let flow = self.flows.remove(&id).expect("only flows wait");
        let mut run = Run {
            machine: self,
            id,
            flow,
            at,
            port: 0,
            current: None,
            carried: Vec::new(),
            locals: Vec::new(),
            goto: None,
            deleted: false,
        };
        run.handle(Event::Turn);
        run.finish();
        self.expire_overdue(at, id);
    }
}

impl Run<'_, '_> {
    fn finish(self) {
        if self.deleted {
            self.machine.leave(self.id);
            self.machine.seen.push(Seen::Ended { flow: self.id });
        } else {
            self.machine.flows.insert(self.id, self.flow);
        }
    }

    fn count(&mut self, reason: DropReason) {
        *self.machine.drops.entry(reason.name()).or_default() += 1;
    }

    fn handle(&mut self, event: Event) {
        let program = self.machine.program;
        for handler in program.states[self.flow.state].handlers.iter().filter(|handler| handler.event == event) {
            if handler.from.is_none_or(|port| i64::from(port) == self.port)
                && handler.when.as_ref().is_none_or(|when| self.value(when) != 0)
            {
                self.block(&handler.body);
                break;
            }
        }
        self.change_state();
    }

    fn enter(&mut self) {
        let program = self.machine.program;
        self.block(&program.states[self.flow.state].enter);
    }

    /// 4.3.6
    fn change_state(&mut self) {
        while let Some(next) = self.goto.take() {
            if self.deleted {
                return;
            }
            let program = self.machine.program;
            self.block(&program.states[self.flow.state].exit);
            self.flow.state = next;
            self.enter();
        }
    }

    fn block(&mut self, statements: &[Statement]) {
        let outer = self.locals.len();
        for statement in statements {
            self.statement(statement);
        }
        self.locals.truncate(outer);
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Notify(notice, value) => {
                let (at, flow, name) = (self.at, self.id, NOTICES[*notice].to_string());
                let value = self.value(value);
                self.machine.seen.push(Seen::Notice { at, flow, name, value });
            }
            Statement::Assign(register, value) => {
                self.flow.registers[*register] = cut(REGISTERS[*register].1, self.value(value))
            }
            Statement::Increase(register, value) => {
                let sum = self.flow.registers[*register].wrapping_add(self.value(value));
                self.flow.registers[*register] = cut(REGISTERS[*register].1, sum);
            }
            Statement::SetField(packet, field, value, optional) => {
                let value = self.value(value) as u64;
                self.set_field(*packet, *field, value, *optional);
            }
            Statement::Let(name, kind, value) => {
                let value = self.value(value);
                self.locals.push((name.clone(), kind.map_or(value, |kind| cut(kind, value))));
            }
            Statement::If(branches, otherwise) => {
                for (condition, body) in branches {
                    if self.value(condition) != 0 {
                        return self.block(body);
                    }
                }
                self.block(otherwise);
            }
            Statement::Goto(state) => self.goto = Some(*state),
            Statement::Delete => self.deleted = true,
            Statement::Call(action, arguments) => self.call(*action, arguments),
            Statement::Set(timer, carried, delay, reset) => self.set_timer(*timer, carried, delay, *reset),
            Statement::Cancel(timer, tests) => self.cancel(*timer, tests),
            Statement::Send(packet, port) => self.send(packet, port),
            // In its own place: nothing, not even a count if it is empty.
            Statement::Store(Packet::Named(PacketName::Slot(from)), to) if from == to => {}
            Statement::Store(packet, slot) => match self.packet(packet) {
                Some(packet) => self.flow.slots[*slot] = Some(packet),
                None => self.count(DropReason::NoPacket),
            },
            Statement::Discard(slot) => {
                if self.flow.slots[*slot].take().is_none() {
                    self.count(DropReason::NoPacket);
                }
            }
            Statement::Reverse(name) => self.change(*name, |packet| {
                packet.reverse();
                Ok(())
            }),
            Statement::Resize(name, length) => {
                let length = self.value(length).max(0) as usize;
                self.change(*name, |packet| packet.resize_payload(length));
            }
            Statement::KeepOptions(name, kind) => self.change(*name, |packet| packet.keep_options(&[*kind])),
            Statement::SetElement(index, value, increase) => {
                let place = self.value(index).rem_euclid(ARRAY.2 as i64) as usize;
                let before = if *increase { self.flow.array[place] } else { 0 };
                self.flow.array[place] = cut(ARRAY.1, before.wrapping_add(self.value(value)));
            }
            Statement::Ask(rank, cost) => self.ask(rank, cost),
            Statement::Withdraw => self.machine.leave(self.id),
            Statement::Step(value) => {
                let (program, value, module) =
                    (self.machine.program, cut(TAKEN.1, self.value(value)), self.flow.chosen);
                self.flow.own[module] = cut(OWN, self.flow.own[module].wrapping_add(value));
                let outer = std::mem::replace(&mut self.locals, vec![(TAKEN.0.to_string(), value)]);
                self.block(&program.modules[module]);
                self.locals = outer;
            }
            Statement::Choose(module) => self.flow.chosen = *module,
        }
    }

    fn place(&mut self, name: PacketName) -> &mut Option<Frame> {
        match name {
            PacketName::Current => &mut self.current,
            PacketName::Slot(slot) => &mut self.flow.slots[slot],
        }
    }

    fn change(&mut self, name: PacketName, change: impl FnOnce(&mut Frame) -> Result<(), DropReason>) {
        let result = self.place(name).as_mut().map_or(Err(DropReason::NoPacket), change);
        if let Err(reason) = result {
            self.count(reason);
        }
    }

    fn set_field(&mut self, packet: PacketName, field: usize, value: u64, optional: bool) {
        let place = self.machine.places[field];
        self.change(packet, |packet| match packet.set(place, value) {
            Err(DropReason::NoField) if optional => Ok(()),
            result => result,
        });
    }

    /// The packet that is to be sent or stored.
    fn packet(&mut self, packet: &Packet) -> Option<Frame> {
        match packet {
            Packet::Named(name) => self.place(*name).clone(),
            Packet::Template(template, fields) => {
                let options = TEMPLATES[*template].1;
                let transport = if options.is_empty() { TemplateTransport::Udp } else { TemplateTransport::Tcp };
                let bare = TemplateSpec {
                    transport,
                    tcp_options: options,
                    wanted: &[],
                    headers: &[],
                    payload: 0,
                    presets: &[],
                };
                let mut built = self.flow.ends.map(|ends| Frame::build(&bare, &ends, &self.machine.formats))?;
                for (field, value) in fields {
                    let value = self.value(value) as u64;
                    if let Err(reason) = built.set(self.machine.places[*field], value) {
                        self.count(reason);
                    }
                }
                Some(built)
            }
        }
    }

    /// 2.7
    fn send(&mut self, packet: &Packet, port: &Expression) {
        let found = self.packet(packet);
        let port = self.value(port);
        let Some(mut found) = found else { return self.count(DropReason::NoPacket) };
        if !(1..=2).contains(&port) {
            return self.count(DropReason::NoPort);
        }
        found.finish();
        let mut bytes = weftwire_core::Buffer::default();
        found.emit(LinkType::Ethernet, &mut bytes);
        self.machine.seen.push(Seen::Sent { at: self.at, port, bytes: bytes.to_vec() });
        if let Packet::Named(name) = packet {
            *self.place(*name) = Some(found);
        }
    }

    /// By value: the action sees its own parameters and none of the caller's locals.
    fn call(&mut self, action: usize, arguments: &[Expression]) {
        let program = self.machine.program;
        let Action { parameters, body } = &program.actions[action];
        let parameters = parameters.iter().zip(arguments);
        let locals = parameters
            .map(|((name, kind), argument)| ((*name).to_string(), cut(*kind, self.value(argument))))
            .collect();
        let outer = std::mem::replace(&mut self.locals, locals);
        self.block(body);
        self.locals = outer;
    }

    /// 4.8
    fn set_timer(&mut self, timer: usize, carried: &[Expression], delay: &Expression, reset: bool) {
        let kinds = TIMERS[timer].1;
        let carried = carried.iter().zip(kinds).map(|(value, (_, kind))| cut(*kind, self.value(value))).collect();
        let due = self.at.saturating_add(self.value(delay).max(0));
        if reset {
            self.flow.timers.retain(|setting| setting.timer != timer);
        }
        if self.flow.timers.len() >= MAX_TIMERS {
            return self.count(DropReason::TooManyTimers);
        }
        self.machine.settings += 1;
        self.flow.timers.push(Setting { due, order: self.machine.settings, timer, carried });
    }

    /// 4.10
    fn cancel(&mut self, timer: usize, tests: &[(usize, Comparison, Expression)]) {
        let kinds = TIMERS[timer].1;
        let tests: Vec<(usize, Comparison, i64)> =
            tests.iter().map(|(index, comparison, value)| (*index, *comparison, self.value(value))).collect();
        let passes = |setting: &Setting| {
            tests.iter().all(|(index, comparison, right)| {
                compare(*comparison, kinds[*index].1.values(), setting.carried[*index], *right)
            })
        };
        self.flow.timers.retain(|setting| setting.timer != timer || !passes(setting));
    }

    fn ask(&mut self, rank: &Expression, cost: &Expression) {
        let (rank, cost) = (self.value(rank), self.value(cost).clamp(1, (1 << 32) - 1));
        let known = self.machine.queue.iter().position(|waiting| waiting.2 == self.id);
        let known = known.map(|place| self.machine.queue.remove(place));
        if known.is_none() && self.machine.queue.len() == MAX_WAITING {
            return self.count(DropReason::TurnsFull);
        }
        if self.machine.queue.is_empty() && known.is_none() {
            self.machine.next_turn = self.machine.next_turn.max(self.at);
        }
        self.machine.requests += 1;
        let number = known.filter(|before| before.0 == rank).map_or(self.machine.requests, |before| before.1);
        self.machine.queue.push((rank, number, self.id, cost));
    }

    /// All flows, this one included.
    fn tally(&self, tally: usize) -> i64 {
        let all = self.machine.flows.values().chain([&self.flow]);
        match tally {
            0 => all.filter(|flow| flow.state > 0).count() as i64,
            _ => all.map(|flow| flow.timers.iter().filter(|setting| setting.timer == 0).count() as i64).sum(),
        }
    }

    fn value(&self, expression: &Expression) -> i64 {
        match expression {
            Expression::Plain(value) | Expression::Constant(_, value) => *value,
            Expression::Register(register) => self.flow.registers[*register],
            Expression::Local(name) => {
                self.locals.iter().find(|(known, _)| known == name).expect("the tree is well-formed").1
            }
            // 2.4
            Expression::Field(packet, field) => self.field(*packet, *field).unwrap_or(0) as i64,
            Expression::Present(packet, field) => i64::from(self.field(*packet, *field).is_some()),
            Expression::Port => self.port,
            Expression::Now => self.at,
            Expression::Carried(index) => self.carried[*index],
            Expression::Binary(operator, left_type, left, right_type, right) => {
                binary(*operator, *left_type, self.value(left), *right_type, self.value(right))
            }
            Expression::Complement(inner) => !self.value(inner),
            Expression::Least(least, type_, left, right) => {
                let (left, right) = (self.value(left), self.value(right));
                // 1.5: the left one, if they are as great as each other.
                let comparison = if *least { Comparison::LessEqual } else { Comparison::GreaterEqual };
                let takes_left = match (*least, type_) {
                    (false, Type::Sequence) => !compare(Comparison::LessEqual, *type_, left, right),
                    _ => compare(comparison, *type_, left, right),
                };
                if takes_left { left } else { right }
            }
            Expression::Compare(comparison, type_, left, right) => {
                i64::from(compare(*comparison, *type_, self.value(left), self.value(right)))
            }
            Expression::And(left, right) => i64::from(self.value(left) != 0 && self.value(right) != 0),
            Expression::Or(left, right) => i64::from(self.value(left) != 0 || self.value(right) != 0),
            Expression::Not(inner) => i64::from(self.value(inner) == 0),
            Expression::Cast(kind, inner) => cut(*kind, self.value(inner)),
            Expression::Speed(bytes, time) => match self.value(time) as u64 {
                0 => 0,
                time => ((self.value(bytes) as u64).wrapping_mul(8_000_000_000) / time) as i64,
            },
            Expression::AddressLiteral(_, value) => *value as i64,
            Expression::AddressCast(address, value) => self.value(value) & ((1 << address.bits()) - 1),
            Expression::Masked(value, mask) => self.value(value) & self.value(mask),
            Expression::SameAddress(equal, left, right) => i64::from((self.value(left) == self.value(right)) == *equal),
            Expression::Prefix(value, address, prefix, bits) => {
                let shift = address.bits() - bits;
                i64::from(self.value(value) as u64 >> shift == prefix >> shift)
            }
            Expression::Count(_, nanoseconds, time) => self.value(time) / nanoseconds,
            Expression::Named(condition) => self.value(&self.machine.program.conditions[*condition]),
            Expression::Element(index) => self.flow.array[self.value(index).rem_euclid(ARRAY.2 as i64) as usize],
            Expression::Waiting => i64::from(self.machine.waits(self.id)),
            Expression::Tally(tally) => self.tally(*tally),
            // 1.8
            Expression::Table(index) => TABLE[self.value(index).clamp(0, TABLE.len() as i64 - 1) as usize],
        }
    }

    fn field(&self, packet: PacketName, field: usize) -> Option<u64> {
        let packet = match packet {
            PacketName::Current => &self.current,
            PacketName::Slot(slot) => &self.flow.slots[slot],
        };
        packet.as_ref()?.get(self.machine.places[field])
    }
}

/// 1.2
fn cut(kind: Kind, value: i64) -> i64 {
    match kind {
        Kind::U8 => i64::from(value as u8),
        Kind::U16 => i64::from(value as u16),
        Kind::U32 | Kind::Seq32 => i64::from(value as u32),
        Kind::U64 | Kind::I64 | Kind::Time => value,
        Kind::Bool => i64::from(value != 0),
    }
}

/// 1.1, 1.3 to 1.5
fn binary(operator: Operator, left_type: Type, left: i64, right_type: Type, right: i64) -> i64 {
    let plain = match operator {
        Operator::Add => left.wrapping_add(right),
        Operator::Subtract => left.wrapping_sub(right),
        Operator::Multiply => left.wrapping_mul(right),
        Operator::And => left & right,
        Operator::Or => left | right,
        Operator::Xor => left ^ right,
        Operator::Divide | Operator::Remainder if right == 0 => 0,
        Operator::Divide if left_type == Type::Unsigned => (left as u64 / right as u64) as i64,
        Operator::Divide => left.wrapping_div(right),
        Operator::Remainder if matches!(left_type, Type::Unsigned | Type::Sequence) => {
            (left as u64 % right as u64) as i64
        }
        Operator::Remainder => left.wrapping_rem(right),
        Operator::ShiftLeft if (0..64).contains(&right) => left << right,
        Operator::ShiftLeft => 0,
        Operator::ShiftRight if matches!(left_type, Type::Unsigned | Type::Sequence) => match right {
            0..64 => (left as u64 >> right) as i64,
            _ => 0,
        },
        Operator::ShiftRight => left >> if (0..64).contains(&right) { right } else { 63 },
    };
    match (operator, left_type, right_type) {
        (Operator::Subtract, Type::Sequence, Type::Sequence) => i64::from(plain as i32),
        (Operator::Add | Operator::Subtract, Type::Sequence, _) | (Operator::Add, _, Type::Sequence) => {
            i64::from(plain as u32)
        }
        _ => plain,
    }
}

fn compare(comparison: Comparison, type_: Type, left: i64, right: i64) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if type_ == Type::Sequence {
        // 1.5
        let before = |one: i64, other: i64| (one.wrapping_sub(other) as i32) < 0;
        let same = left as u32 == right as u32;
        return match comparison {
            Comparison::Equal => same,
            Comparison::NotEqual => !same,
            Comparison::Less => before(left, right),
            Comparison::LessEqual => same || before(left, right),
            Comparison::Greater => before(right, left),
            Comparison::GreaterEqual => same || before(right, left),
        };
    }
    let order = if type_ == Type::Unsigned { (left as u64).cmp(&(right as u64)) } else { left.cmp(&right) };
    match comparison {
        Comparison::Equal => order == Equal,
        Comparison::NotEqual => order != Equal,
        Comparison::Less => order == Less,
        Comparison::LessEqual => order != Greater,
        Comparison::Greater => order == Greater,
        Comparison::GreaterEqual => order != Less,
    }
}
