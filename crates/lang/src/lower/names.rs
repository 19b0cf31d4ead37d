//! What a name or a path in an expression stands for, and whether it is known where it stands.

use super::calls::private;
use super::expression::Value;
use super::ir::Ir;
use super::types::Type;
use super::{EventKind, Lowerer, Scope, Symbol};
use crate::ast::Name;
use weftwire_image::{Environment, Operand, PacketRef, TimerQuery};
use weftwire_text::diagnostic::{Diagnostic, nearest};
use weftwire_text::source::Span;

impl Lowerer<'_> {
    pub(super) fn path(&mut self, path: &[Name], span: Span, scope: &mut Scope) -> Value {
        let texts: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
        if let [name] = path {
            return self.single_name(name, scope);
        }
        if let [timer, value] = path
            && let Some(Symbol::Timer(index)) = self.known(&timer.text)
        {
            let carries = self.timers[usize::from(index)].iter().any(|(name, _)| *name == value.text);
            let asks = !carries && TimerQuery::ALL.iter().any(|what| what.name() == value.text);
            return match asks {
                true => self.timer_question(index, value, &[], scope),
                false => self.timer_value(timer, value, index, scope),
            };
        }
        if let [object, question] = path
            && let Some(Symbol::Ranges(_) | Symbol::Segments(_)) = self.known(&object.text)
        {
            return self.question(object, question, &[], scope);
        }
        if let [turns, question] = path
            && let Some(Symbol::Turns(index)) = self.known(&turns.text)
        {
            return self.turns_question(index, question);
        }
        if let [module, name, ..] = path
            && let Some(Symbol::Module) = self.known(&module.text)
        {
            let error = Diagnostic::error(span, format!("`{}` can't be reached from here", name.text));
            self.report(error.help(private(&name.text, &module.text)));
            return Value::error();
        }
        let environment = match texts[..] {
            ["port", "mtu"] => return self.question(&path[0], &path[1], &[], scope),
            ["packet", name @ ("port" | "length" | "payload")] => {
                if scope.event != EventKind::Packet {
                    let message = if self.untyped {
                        format!("`pktRcvd.{name}` is known only in `on (pktRcvd)`")
                    } else {
                        format!("`packet.{name}` is known only in `on packet`")
                    };
                    let help = self.called_from("keep it in a register", scope);
                    self.report(Diagnostic::error(span, message).help(help));
                }
                let index = ["port", "length", "payload"].iter().position(|known| *known == name).unwrap_or(0);
                return Value::new(Ir::Operand(Operand::Event(index as u8)), Type::Integer);
            }
            ["data", "length"] => {
                if scope.event != EventKind::Data {
                    self.report(Diagnostic::error(span, "`data.length` is known only in `on data`"));
                }
                return Value::new(Ir::Operand(Operand::Event(0)), Type::Integer);
            }
            ["read", "length"] => {
                if scope.event != EventKind::Read {
                    self.report(Diagnostic::error(span, "`read.length` is known only in `on read`"));
                }
                return Value::new(Ir::Operand(Operand::Event(0)), Type::Integer);
            }
            ["icmp", name @ ("type" | "code" | "mtu")] => {
                if scope.event != EventKind::Icmp {
                    self.report(Diagnostic::error(span, format!("`icmp.{name}` is known only in `on icmp`")));
                }
                let index = ["type", "code", "mtu"].iter().position(|known| *known == name).unwrap_or(0);
                return Value::new(Ir::Operand(Operand::Event(index as u8)), Type::Integer);
            }
            ["flow", "id"] => {
                let help = "`flow.hash` is the same for a flow wherever it runs; a register and `random` make a name of its own";
                self.report(Diagnostic::error(span, "a flow has no number that a machine could see").help(help));
                return Value::error();
            }
            ["flow", "hash"] => Some((Environment::FlowHash, Type::Unsigned)),
            ["flow", "full"] => Some((Environment::FlowFull, Type::Bool)),
            ["application", "available"] => Some((Environment::ApplicationAvailable, Type::Integer)),
            ["application", "closed"] => Some((Environment::ApplicationClosed, Type::Bool)),
            ["application", "listening"] => Some((Environment::ApplicationListening, Type::Bool)),
            ["application", "room"] => Some((Environment::ApplicationRoom, Type::Integer)),
            _ => None,
        };
        if let Some((environment, kind)) = environment {
            return Value::new(Ir::Operand(Operand::Environment(environment)), kind);
        }
        match self.field_path(path, PacketRef::Current, scope) {
            Some((packet, field, kind)) => Value::new(Ir::Operand(Operand::Field { packet, field }), kind),
            None => Value::error(),
        }
    }

    fn single_name(&mut self, name: &Name, scope: &mut Scope) -> Value {
        if let Some((_, value)) = scope.locals.iter().rev().find(|(known, _)| *known == name.text) {
            return value.clone();
        }
        let flags = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        match self.known(&name.text) {
            Some(Symbol::Constant(value)) => value,
            Some(Symbol::Register(index)) => {
                self.used.insert(self.key(&name.text));
                Value::new(Ir::Operand(Operand::Register(index)), self.register_types[usize::from(index)])
            }
            Some(Symbol::Tally(tally)) => {
                self.used.insert(name.text.clone());
                Value::new(Ir::Operand(Operand::Environment(Environment::Tally(tally))), Type::Integer)
            }
            Some(Symbol::Condition(condition)) => {
                self.named(name, scope, |lowerer, scope| Value::new(lowerer.condition(&condition, scope), Type::Bool))
            }
            Some(Symbol::Value(value)) => self.named(name, scope, |lowerer, scope| {
                let pure = std::mem::replace(&mut scope.allow_random, false);
                let value = Value { literal: false, ..lowerer.expression(&value, scope) };
                scope.allow_random = pure;
                value
            }),
            Some(other) => {
                let message = format!("`{}` is {}, not a value", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message));
                Value::error()
            }
            None if name.text == "now" || name.text == "(now)" => {
                Value::new(Ir::Operand(Operand::Environment(Environment::Now)), Type::Time)
            }
            None if name.text == "true" || name.text == "false" => {
                Value::new(Ir::constant(i64::from(name.text == "true")), Type::Bool)
            }
            None => match flags.iter().position(|flag| *flag == name.text) {
                Some(bit) => Value { ir: Ir::constant(1 << bit), kind: Type::Integer, literal: true },
                None => {
                    self.unknown(name, "a value", scope);
                    Value::error()
                }
            },
        }
    }

    /// A named expression, written out. It is read where it is declared: it sees no locals, nor parameters that hide a register.
    fn named(&mut self, name: &Name, scope: &mut Scope, read: impl FnOnce(&mut Self, &mut Scope) -> Value) -> Value {
        if scope.depth > 50 {
            self.report(Diagnostic::error(name.span, format!("`{}` names itself", name.text)));
            return Value::error();
        }
        scope.depth += 1;
        let locals = std::mem::take(&mut scope.locals);
        let outside = self.key(&name.text) == name.text;
        let namespace = if outside { String::new() } else { self.namespace.clone() };
        let value = self.within(namespace, |lowerer| read(lowerer, scope));
        scope.locals = locals;
        scope.depth -= 1;
        value
    }

    fn timer_value(&mut self, timer: &Name, value: &Name, index: u8, scope: &Scope) -> Value {
        let (names, kinds) = {
            let known = &self.timers[usize::from(index)];
            (known.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), known.clone())
        };
        if scope.event != EventKind::Timer(index) {
            let event = if self.untyped { format!("({})", timer.text) } else { timer.text.clone() };
            let message = format!("`{}.{}` is known only in `on {event}`", timer.text, value.text);
            let help = self.called_from("keep it in a register", scope);
            self.report(Diagnostic::error(timer.span.to(value.span), message).help(help));
            return Value::error();
        }
        match names.iter().position(|name| *name == value.text) {
            Some(position) => Value::new(Ir::Operand(Operand::Event(position as u8)), kinds[position].1.0),
            None => {
                let message = format!("the timer `{}` carries no `{}`", timer.text, value.text);
                let carries = if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
                self.report(Diagnostic::error(value.span, message).help(format!("it carries {carries}")));
                Value::error()
            }
        }
    }

    /// `header.field` of `base`, or `packet.header.field` of a named packet.
    pub(crate) fn field_path(
        &mut self,
        path: &[Name],
        base: PacketRef,
        scope: &Scope,
    ) -> Option<(PacketRef, u16, Type)> {
        let (packet, header, field) = match path {
            [header, field] => (base, header, field),
            [packet, header, field] => (self.packet_name(packet, scope)?, header, field),
            _ => {
                let span = path.first().map_or(Span::default(), |name| name.span);
                self.report(Diagnostic::error(span, "expected `header.field` or `packet.header.field`"));
                return None;
            }
        };
        if packet == PacketRef::Current {
            self.need_packet(header.span.to(field.span), scope);
        }
        let (index, kind) = self.field(header, field)?;
        Some((packet, index, kind))
    }

    /// `packet` or the name of a slot.
    pub(crate) fn packet_name(&mut self, name: &Name, scope: &Scope) -> Option<PacketRef> {
        if name.text == "packet" {
            self.need_packet(name.span, scope);
            return Some(PacketRef::Current);
        }
        match self.known(&name.text) {
            Some(Symbol::Slot(slot)) => Some(PacketRef::Slot(slot)),
            Some(other) => {
                let message = format!("`{}` is {}, not a packet", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message).help("packets are `packet` and slots"));
                None
            }
            None => {
                self.unknown(name, "a packet", scope);
                None
            }
        }
    }

    pub(crate) fn need_packet(&mut self, span: Span, scope: &Scope) {
        if matches!(scope.event, EventKind::Packet | EventKind::Icmp | EventKind::Other) {
            return;
        }
        let help = if self.untyped {
            "only `on (pktRcvd)` (and the states it leads to) handles a packet; `storePacket(n)` keeps one for later"
        } else {
            "only `on packet` (and what it enters) handles a packet; store it in a slot to use it later"
        };
        let help = self.called_from(help, scope);
        self.report(Diagnostic::error(span, "there is no packet at this event").help(help));
    }

    /// `restart instance` stands where a packet has arrived.
    pub(crate) fn need_arrival(&mut self, span: Span, scope: &Scope) {
        if !matches!(scope.event, EventKind::Packet) {
            let help = self.called_from("only in `on packet` is there one that a new instance can begin with", scope);
            self.report(Diagnostic::error(span, "no packet has arrived at this event").help(help));
        }
    }

    /// The help; in an action, also which call brought it here.
    fn called_from(&self, help: &str, scope: &Scope) -> String {
        let Some((action, line)) =
            scope.calls.first().map(|index| (&self.actions[*index].declaration.name.text, scope.call_line))
        else {
            return help.to_string();
        };
        let event = match scope.event {
            EventKind::Packet => "a packet".to_string(),
            EventKind::Icmp => "an ICMP error".to_string(),
            EventKind::Timer(timer) => format!("the timer `{}`", self.image.timers[usize::from(timer)].name),
            EventKind::Turn => "a turn".to_string(),
            EventKind::Data | EventKind::Read | EventKind::Call => "a call of the application".to_string(),
            EventKind::Other => "entering or leaving a state".to_string(),
        };
        format!("{help}; `{action}` is called at {event} on line {line}")
    }

    pub(crate) fn unknown(&mut self, name: &Name, what: &str, scope: &Scope) {
        let mut error = Diagnostic::error(name.span, format!("`{}` is not known; expected {what}", name.text));
        let known = self.symbols.keys().map(|key| key.strip_prefix(&self.namespace).unwrap_or(key));
        let known = known.chain(scope.locals.iter().map(|(known, _)| known.as_str()));
        if let Some(module) = self.owner_of(&name.text) {
            error = error.help(private(&name.text, module));
        } else if let Some(near) = nearest(&name.text, known.chain(["now", "packet"])) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        self.report(error);
    }
}
