//! A vector in an engine.

use crate::bytes::{from_hex, to_hex};
use crate::format::{Ends, Input, Setup, Vector};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use weftwire_core::control::PortChange;
use weftwire_core::port::Checksum;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{
    CallError, Change, Connections, ControlError, Endpoints, FlowId, Frame, Function, Listen, Offload, Outbox, Output,
    Port, Time, control,
};

/// No vector has more come out of an input; an engine that does has lost its way.
const MOST_OUTPUT: usize = 64 << 20;

/// An engine under test.
pub type Engine = Box<dyn Function>;

/// What an engine has put out.
struct Seen {
    engine: Engine,
    out: Outbox,
    /// The names of flows.
    names: BTreeMap<FlowId, String>,
    sent: Vec<Value>,
    /// Which of those left with a partial checksum.
    partial: Vec<usize>,
    /// Which of them stand for segments of so many bytes.
    cut: Vec<(usize, u16)>,
    flows: BTreeMap<String, Vec<Value>>,
    /// The ends of flows that packets made.
    opened: BTreeMap<String, Value>,
    /// Whether frames are compared.
    frames: bool,
    /// Kinds of records to be compared.
    debug: Vec<String>,
    wrong: Vec<String>,
}

impl Vector {
    /// Runs the vector in engines that `make` makes, once without trace records and once with them. Returns all that is not as expected.
    pub fn run<E: Debug>(&self, mut make: impl FnMut(Setup) -> Result<Engine, E>) -> Vec<String> {
        let refused = self.document.expected.refused.as_deref();
        let setup = match (self.setup(), refused) {
            (Ok(setup), None) => setup,
            (Ok(_), Some(path)) => return vec![format!("the image should be refused at {path}")],
            (Err(error), Some(path)) if error.to_string().starts_with(&format!("{path}: ")) => return Vec::new(),
            (Err(error), _) => return vec![format!("the image is refused: {error}")],
        };
        let mut wrong = Vec::new();
        for tracing in [false, true] {
            if !tracing && !self.document.debug.is_empty() {
                continue;
            }
            match make(setup.clone()) {
                Ok(engine) => wrong.extend(self.run_once(engine, tracing)),
                Err(error) => wrong.push(format!("there is no engine: {error:?}")),
            }
        }
        wrong.dedup();
        wrong
    }

    fn run_once(&self, engine: Engine, tracing: bool) -> Vec<String> {
        let out = if tracing { Outbox::tracing() } else { Outbox::new() }.bounded(MOST_OUTPUT);
        let mut seen = Seen {
            engine,
            out,
            names: BTreeMap::new(),
            sent: Vec::new(),
            partial: Vec::new(),
            cut: Vec::new(),
            flows: BTreeMap::new(),
            opened: BTreeMap::new(),
            frames: self.document.expected.sent.is_some(),
            debug: self.document.debug.clone(),
            wrong: Vec::new(),
        };
        for (number, input) in self.document.inputs.iter().enumerate() {
            if let Err(problem) = seen.input(self, input) {
                seen.wrong.push(format!("input {number}: {problem}"));
            }
            if seen.out.is_full() {
                seen.wrong.push(format!("input {number}: more than {MOST_OUTPUT} bytes came out"));
                return seen.wrong;
            }
            seen.take_in(input.flow.as_deref());
        }
        seen.compare(self);
        seen.wrong
    }
}

impl Seen {
    fn input(&mut self, vector: &Vector, input: &Input) -> Result<(), String> {
        let now = Time::from_nanoseconds(input.at);
        let named = input.flow.as_deref().and_then(|name| self.names.iter().find(|(_, known)| *known == name));
        let flow = named.map_or(FlowId(0), |(flow, _)| *flow);
        let (engine, out) = (&mut self.engine, &mut self.out);
        let mut refused = None;
        if let Some(bytes) = &input.frame {
            let bytes = from_hex(bytes).ok_or("the frame is not hexadecimal")?;
            let checksum = match input.checksum.as_deref() {
                Some("verified") => Checksum::Verified,
                Some("partial") => Checksum::Partial,
                _ => Checksum::Unverified,
            };
            let frame = Frame { bytes: &bytes, offload: Offload { segmentation: None, checksum } };
            engine.frame(now, Port(input.port), frame, out);
        } else if let Some(ends) = &input.connect {
            refused = connections(engine)?.connect(now, &endpoints(ends)?, out).err();
        } else if let Some(write) = &input.write {
            let bytes = match write {
                Value::Number(zeros) => vec![0; zeros.as_u64().ok_or("not a length")? as usize],
                Value::String(text) => from_hex(text).ok_or("the bytes are not hexadecimal")?,
                _ => return Err("bytes or a number of zeros are written".into()),
            };
            match connections(engine)?.write(now, flow, &bytes, out) {
                Ok(accepted) if Some(accepted) != input.accepted => {
                    return Err(format!("{accepted} bytes are accepted"));
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        } else if input.close {
            refused = connections(engine)?.close(now, flow, out).err();
        } else if input.abort {
            refused = connections(engine)?.abort(now, flow, out).err();
        } else if let Some((address, port)) = input.listen {
            refused = connections(engine)?.listen(now, &Listen { address, port }, out).err();
        } else if let Some((address, port)) = input.unlisten {
            refused = connections(engine)?.unlisten(now, &Listen { address, port }, out).err();
        } else if input.accept {
            refused = connections(engine)?.accept(now, flow, out).err();
        } else if let Some(length) = input.consumed {
            refused = connections(engine)?.consumed(now, flow, length, out).err();
        } else if input.fire {
            engine.fire(now, out);
        } else if let Some(change) = &input.set {
            let change = Change::SetRegister { flow, register: change.register.clone(), value: change.value };
            control::change(engine.as_mut(), now, change, out).map_err(|error| error.to_string())?;
        } else if let Some((port, mtu)) = input.mtu {
            let change = mtu.map_or(PortChange::Gone, |bytes| PortChange::Mtu { bytes });
            let change = Change::Port { port: Port(port), change };
            control::change(engine.as_mut(), now, change, out).map_err(|error| error.to_string())?;
        } else if input.delete {
            let change = Change::Delete { flow };
            control::change(engine.as_mut(), now, change, out).map_err(|error| error.to_string())?;
        } else if input.replace.is_some() || input.parameters.is_some() {
            let change = match (&input.replace, &input.parameters) {
                (Some(patch), _) => Change::Image { document: vector.patched(patch)? },
                (None, parameters) => Change::SetParameters { parameters: parameters.clone().unwrap_or_default() },
            };
            match control::change(engine.as_mut(), now, change, out) {
                Ok(_) => {}
                Err(ControlError::Unfit(why)) => refused = Some(CallError::Unfit(why)),
                Err(error) => return Err(error.to_string()),
            }
        } else {
            return Err("nothing happens".into());
        }
        let refused = refused.as_ref().map(refusal);
        match refused == input.refused.as_deref() {
            true => Ok(()),
            false => Err(format!("refused: {refused:?}, expected {:?}", input.refused)),
        }
    }

    /// Sorts what was put out by flow. A flow that nobody knows is the one that this input belongs to.
    fn take_in(&mut self, name: Option<&str>) {
        let out = std::mem::take(&mut self.out);
        for item in out.items() {
            self.item(item, &out, name);
        }
        let live: Vec<FlowId> = self.engine.flows().iter().map(|flow| flow.flow).collect();
        for flow in live {
            self.name(flow, name);
        }
        self.out = out;
        self.out.clear();
    }

    fn item(&mut self, item: &Output, out: &Outbox, name: Option<&str>) {
        let (flow, told) = match item {
            Output::Send { .. } if !self.frames => return,
            Output::Send { at, port, bytes, offload } => {
                if offload.checksum == Checksum::Partial {
                    self.partial.push(self.sent.len());
                }
                self.cut.extend(offload.segmentation.map(|cut| (self.sent.len(), cut.size)));
                return self.sent.push(json!([at.nanoseconds(), port.0, to_hex(out.bytes(bytes))]));
            }
            Output::Deliver { flow, bytes } => (*flow, json!({ "deliver": to_hex(out.bytes(bytes)) })),
            Output::Released { flow, length } => (*flow, json!({ "released": length })),
            Output::Notify { at, flow, notice, value } => {
                (*flow, json!({ "at": at.nanoseconds(), "notify": [self.engine.notice_name(*notice), value] }))
            }
            Output::Opened { flow, endpoints } => {
                let name = self.name(*flow, name);
                let side = |address, port| SocketAddr::new(address, port).to_string();
                let ends = endpoints.map(|ends| {
                    [side(ends.local_address, ends.local_port), side(ends.remote_address, ends.remote_port)]
                });
                self.opened.insert(name, json!(ends));
                return;
            }
            Output::Answered(_) => return,
            Output::Ended { flow } => (*flow, json!({ "ended": true })),
            Output::Trace(record) => {
                let kind = json!(record.kind);
                if !self.debug.iter().any(|wanted| kind == wanted.as_str()) {
                    return;
                }
                (record.flow, shown(record, &kind))
            }
        };
        let name = self.name(flow, name);
        self.flows.entry(name).or_default().push(told);
    }

    /// The name of a flow; from now on this one if it had none.
    fn name(&mut self, flow: FlowId, name: Option<&str>) -> String {
        if let Some(known) = self.names.get(&flow) {
            return known.clone();
        }
        let name = match name {
            Some(name) if self.names.values().all(|known| known != name) => name.to_owned(),
            other => {
                self.wrong.push(format!("an instance is made that nobody expects, at an input of {other:?}"));
                format!("unexpected {flow}")
            }
        };
        self.flows.entry(name.clone()).or_default();
        self.names.insert(flow, name.clone());
        name
    }

    fn compare(&mut self, vector: &Vector) {
        let expected = &vector.document.expected;
        let mut differ = |what: &str, found: Value, wanted: Value| {
            if found != wanted {
                self.wrong.push(format!("{what}: {found}, expected {wanted}"));
            }
        };
        if let Some(sent) = &expected.sent {
            differ("sent", json!(self.sent), sent.clone());
            differ("partial", json!(self.partial), json!(expected.partial));
            differ("cut", json!(self.cut), json!(expected.cut));
        }
        differ("flows", json!(self.flows), json!(expected.flows));
        if let Some(wanted) = &expected.opened {
            differ("opened", json!(self.opened), json!(wanted));
        }
        let counters = self.engine.counters();
        differ("drops", json!(counters.drops), json!(expected.drops));
        let found = json!(counters);
        for (name, wanted) in &expected.counters {
            let found = match name.as_str() {
                "rows" => json!(counters.rows.iter().map(|(_, count)| count).collect::<Vec<_>>()),
                _ => found[name].clone(),
            };
            differ(name, found, wanted.clone());
        }
        if let Some(wanted) = &expected.live {
            let mut live: Vec<&String> =
                self.engine.flows().iter().filter_map(|flow| self.names.get(&flow.flow)).collect();
            live.sort();
            differ("live", json!(live), json!(wanted));
        }
        if let Some(wanted) = expected.due {
            let due = self.engine.next_deadline().map(|deadline| deadline.at.nanoseconds());
            differ("due", json!(due), json!(wanted));
        }
        for (name, wanted) in &expected.at_end {
            let flow = self.names.iter().find(|(_, known)| *known == name).map(|(flow, _)| *flow);
            let found = flow.and_then(|flow| self.engine.flow(flow)).map_or(Value::Null, |flow| {
                let registers: Map<String, Value> =
                    flow.registers.iter().map(|it| (it.name.clone(), it.value.into())).collect();
                let timers: Vec<Value> =
                    flow.timers.iter().map(|it| json!([it.name, it.due.nanoseconds(), it.payload])).collect();
                json!({ "state": flow.summary.state, "registers": registers, "timers": timers })
            });
            for (member, wanted) in wanted {
                differ(&format!("{member} of {name}"), found[member].clone(), wanted.clone());
            }
        }
    }
}

fn connections(engine: &mut Box<dyn Function>) -> Result<&mut dyn Connections, String> {
    engine.connections().ok_or_else(|| "this function carries no connections".into())
}

fn shown(record: &TraceRecord, kind: &Value) -> Value {
    let registers: Map<String, Value> =
        record.registers.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    json!({ "at": record.time.nanoseconds(), "show": [kind, record.event, record.state, record.next, registers] })
}

fn refusal(error: &CallError) -> &'static str {
    match error {
        CallError::Exists(_) => "exists",
        CallError::TableFull => "table_full",
        CallError::NoFlow(_) => "no_flow",
        CallError::Unfit(_) => "unfit",
        CallError::Closed(_) => "closed",
        CallError::NoConnections => "no_connections",
        CallError::NoParameter(_) => "no_parameter",
        CallError::TooManyListening(_) => "too_many_listening",
    }
}

fn endpoints(ends: &Ends) -> Result<Endpoints, String> {
    let address = |text: &str| text.parse::<SocketAddr>().map_err(|error| format!("{text}: {error}"));
    let (local, remote) = (address(&ends.local)?, address(&ends.remote)?);
    let mac = |text: &str| {
        let bytes: Option<[u8; 6]> = from_hex(text).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| format!("{text} is no Ethernet address"))
    };
    Ok(Endpoints {
        protocol: match ends.protocol.as_str() {
            "tcp" => 6,
            "udp" => 17,
            "sctp" => 132,
            other => return Err(format!("no protocol {other}")),
        },
        local_address: local.ip(),
        local_port: local.port(),
        remote_address: remote.ip(),
        remote_port: remote.port(),
        local_mac: mac(&ends.local_mac)?.into(),
        remote_mac: mac(&ends.remote_mac)?.into(),
        vlan: None,
    })
}
