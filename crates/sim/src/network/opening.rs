//! Traffic begins: flows are opened one by one, when their time has come.

use super::flows::{NO_FLOW, Outcome};
use super::queue::Event;
use super::simulation::{Kind, Simulation};
use std::io;
use weftwire_core::Time;
use weftwire_network::model::{TrafficKind, Transport};
use weftwire_network::traffic::Begin;

impl Simulation<'_> {
    /// The next flow, datagram or captured frame of a traffic.
    pub fn begin(&mut self, index: u32) -> io::Result<()> {
        let traffic = &self.network.traffic[index as usize];
        if let TrafficKind::Capture { port, .. } = &traffic.kind {
            return self.captured(index, *port);
        }
        let source = &mut self.sources[index as usize];
        let Some(begin) = source.begins.next() else { return Ok(()) };
        let follows = source.begins.peek().map(|next| next.at);
        if let Some(at) = follows {
            self.queue.push(at.nanoseconds().max(self.now), Event::Begin(index));
        }
        match &traffic.kind {
            TrafficKind::Datagrams { .. } => self.begin_datagram(index, begin, follows.is_none()),
            _ => self.open(index, begin),
        }
    }

    /// The next frame of a capture leaves its port.
    fn captured(&mut self, index: u32, port: weftwire_core::Port) -> io::Result<()> {
        let traffic = &self.network.traffic[index as usize];
        let source = &mut self.sources[index as usize];
        let Some((_, bytes)) = source.frames.get_mut(source.next) else { return Ok(()) };
        let bytes = std::mem::take(bytes);
        source.next += 1;
        if let Some((at, _)) = source.frames.get(source.next) {
            let at = traffic.start.after(*at);
            if at < traffic.stop {
                self.queue.push(at.nanoseconds().max(self.now), Event::Begin(index));
            }
        }
        match (self.lanes.out(traffic.from, port), self.frames.copy(&bytes)) {
            (Some(lane), Some(slot)) => self.transmit(lane, slot),
            (None, _) => {
                self.warn(|| format!("{}: there is no port {port}", traffic.name));
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }

    fn begin_datagram(&mut self, index: u32, begin: Begin, last: bool) -> io::Result<()> {
        let traffic = &self.network.traffic[index as usize];
        let function = self.kinds[traffic.from.0 as usize] == Kind::Function;
        if self.sources[index as usize].flow == NO_FLOW {
            let (Ok(flow) | Err(flow)) =
                self.flows.open(self.network, index, Begin { number: 0, bytes: 0, ..begin }, self.now);
            self.sources[index as usize].flow = flow;
            if function && self.flows.get_mut(flow).is_running() {
                self.open_function(flow)?;
            }
        }
        let flow = self.sources[index as usize].flow;
        if !self.flows.get_mut(flow).is_running() {
            return Ok(());
        }
        if function {
            let state = self.flows.get_mut(flow);
            state.goal[0] += begin.bytes;
            state.closing |= last;
            return self.feed_function(flow, 0);
        }
        if traffic.transport != Transport::Udp {
            self.flows.get_mut(flow).end(self.now, Outcome::Failed("datagrams go over UDP".into()));
            return Ok(());
        }
        self.send_datagram(flow, begin.number, begin.bytes)
    }

    fn open(&mut self, index: u32, begin: Begin) -> io::Result<()> {
        let traffic = &self.network.traffic[index as usize];
        let Ok(flow) = self.flows.open(self.network, index, begin, self.now) else {
            return Ok(());
        };
        self.sources[index as usize].flow = flow;
        if begin.bytes == u64::MAX && traffic.stop < Time::ZERO.plus(self.network.duration) {
            self.queue.push(traffic.stop.nanoseconds().max(self.now), Event::Application(flow));
        }
        match (self.kinds[traffic.from.0 as usize], traffic.transport) {
            (Kind::Function, _) | (Kind::Host, Transport::Tcp) => self.open_function(flow),
            _ => {
                let node = &self.network.node(traffic.from).name;
                let reason = format!("`{node}` has no {} for streams", traffic.transport.name());
                self.flows.get_mut(flow).end(self.now, Outcome::Failed(reason.into()));
                Ok(())
            }
        }
    }

    /// The opener's application has thought, or is to stop.
    pub fn application_continues(&mut self, number: u32) -> io::Result<()> {
        let now = self.now;
        let flow = self.flows.get_mut(number);
        if !flow.is_running() {
            return Ok(());
        }
        match &self.network.traffic[flow.traffic as usize].kind {
            TrafficKind::RequestResponse { request, .. } => {
                flow.goal[0] += (*request).max(1);
                flow.asked_at = now;
            }
            _ => {
                flow.goal[0] = flow.written[0];
                flow.closing = true;
                if flow.received[1] >= flow.goal[0] {
                    flow.end(now, Outcome::Complete);
                }
            }
        }
        self.feed_function(number, 0)
    }
}
