//! Files over connections: `weft run --connect --send --receive`.

use super::{Application, Calls};
use crate::error::LinuxError;
use crate::system::{poll, poll_input};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use weftwire_core::{CallError, Endpoints, FlowId, Listen};

/// Bytes read from the source at once.
const CHUNK: usize = 64 * 1024;

/// Opens connections at the start, or waits for one that the peer opens; feeds the first one from a file, and writes all
/// delivered bytes to another.
#[derive(Default)]
pub struct Transfer {
    listens: Vec<Listen>,
    connects: Vec<Endpoints>,
    source: Option<Source>,
    sink: Option<BufWriter<File>>,
    /// Flows opened and not yet ended.
    open: Vec<FlowId>,
    opened: bool,
    /// Bytes delivered that the function has not been told of as read.
    read: Vec<(FlowId, usize)>,
    /// The first flow that the peer opens is the application's.
    awaits_peer: bool,
    /// The flow that the peer has just opened. If it ends at once, it was none: a packet that the function refused.
    fresh: Option<FlowId>,
    /// The run ends with its connections.
    ends: bool,
    failure: Option<io::Error>,
}

/// The bytes to send on a flow.
struct Source {
    file: File,
    /// A regular file: reading never waits.
    regular: bool,
    flow: Option<FlowId>,
    buffer: Vec<u8>,
    /// Bytes at the buffer's front that the flow has accepted.
    accepted: usize,
    /// The flow's buffer is full; wait for [`weftwire_core::Output::Released`].
    blocked: bool,
    /// The file has ended.
    ended: bool,
}

impl Transfer {
    /// Opens these connections when the run starts.
    pub fn new(connects: Vec<Endpoints>) -> Transfer {
        Transfer { connects, ..Transfer::default() }
    }

    /// Waits there for connections that others open.
    pub fn listen(&mut self, local: Listen) {
        self.listens.push(local);
    }

    /// Takes the first flow that the peer opens for its connection, in place of one that it opens itself.
    pub fn await_peer(&mut self) {
        self.awaits_peer = true;
    }

    /// The run is over when every connection that was opened has ended.
    pub fn end_with_connections(&mut self) {
        self.ends = true;
    }

    /// Sends the bytes of `file` on the first connection, then closes it for sending.
    pub fn set_source(&mut self, file: File) {
        let regular = file.metadata().is_ok_and(|data| data.is_file());
        let (buffer, accepted, blocked, ended) = (Vec::with_capacity(CHUNK), 0, false, false);
        self.source = Some(Source { file, regular, flow: None, buffer, accepted, blocked, ended });
    }

    /// Writes the bytes delivered on any flow to `sink`. A pipe that is read slowly holds up the run.
    pub fn set_sink(&mut self, sink: File) {
        self.sink = Some(BufWriter::with_capacity(CHUNK, sink));
    }
}

impl Application for Transfer {
    fn listens(&self) -> Vec<Listen> {
        self.listens.clone()
    }

    fn connects(&self) -> bool {
        !self.connects.is_empty()
    }

    fn connect(&mut self, calls: &mut Calls<'_>) -> Result<(), LinuxError> {
        for endpoints in std::mem::take(&mut self.connects) {
            self.open.push(calls.connect(&endpoints)?);
            self.opened = true;
        }
        if let Some(source) = &mut self.source {
            source.flow = self.open.first().copied();
        }
        Ok(())
    }

    /// Takes up a flow that the peer has opened, if that is what it waits for.
    fn opened(&mut self, flow: FlowId, _: Option<&Endpoints>) {
        if !self.awaits_peer {
            return;
        }
        (self.awaits_peer, self.opened, self.fresh) = (false, true, Some(flow));
        self.open.push(flow);
        if let Some(source) = &mut self.source {
            source.flow = Some(flow);
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let source = self.source.as_ref().filter(|source| source.wants_bytes())?;
        Some(source.file.as_fd())
    }

    fn work(&mut self, calls: &mut Calls<'_>) -> bool {
        self.fresh = None;
        for (flow, length) in self.read.drain(..) {
            calls.consumed(flow, length);
        }
        let Some(source) = &mut self.source else { return false };
        match source.feed(calls) {
            Ok(Progress::Fed) => return true,
            Ok(Progress::Waits) => return false,
            Ok(Progress::Done) => {}
            Err(error) => self.failure = Some(error),
        }
        self.source = None;
        false
    }

    /// Taking bytes counts as reading them: [`Application::work`] says so to the function.
    fn delivered(&mut self, flow: FlowId, bytes: &[u8]) {
        match self.read.last_mut().filter(|(last, _)| *last == flow) {
            Some((_, length)) => *length += bytes.len(),
            None => self.read.push((flow, bytes.len())),
        }
        if let Some(sink) = &mut self.sink
            && let Err(error) = sink.write_all(bytes)
        {
            self.failure = Some(error);
            self.sink = None;
        }
    }

    fn released(&mut self, flow: FlowId, _: usize) {
        if let Some(source) = self.source.as_mut().filter(|source| source.flow == Some(flow)) {
            source.blocked = false;
        }
    }

    fn ended(&mut self, flow: FlowId) {
        self.open.retain(|open| *open != flow);
        if self.fresh.take_if(|fresh| *fresh == flow).is_some() {
            (self.awaits_peer, self.opened) = (true, false);
            if let Some(source) = &mut self.source {
                source.flow = None;
            }
        }
        self.source.take_if(|source| source.flow == Some(flow));
    }

    fn is_over(&self) -> bool {
        self.ends && self.opened && self.open.is_empty()
    }

    fn flush(&mut self) {
        if let Some(sink) = &mut self.sink
            && let Err(error) = sink.flush()
        {
            self.failure = Some(error);
            self.sink = None;
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush();
        self.failure.take().map_or(Ok(()), Err)
    }
}

enum Progress {
    /// Something was handed over.
    Fed,
    /// Nothing to read, or no room in the flow.
    Waits,
    /// The source is used up, or its flow is gone.
    Done,
}

impl Source {
    fn wants_bytes(&self) -> bool {
        self.accepted == self.buffer.len() && !self.ended && self.flow.is_some()
    }

    fn feed(&mut self, calls: &mut Calls<'_>) -> io::Result<Progress> {
        let Some(flow) = self.flow else { return Ok(Progress::Waits) };
        if self.wants_bytes() {
            if !self.regular && !readable(&self.file)? {
                return Ok(Progress::Waits);
            }
            self.buffer.resize(CHUNK, 0);
            self.accepted = 0;
            let length = self.file.read(&mut self.buffer)?;
            self.buffer.truncate(length);
            self.ended = length == 0;
        }
        if self.ended {
            calls.close(flow);
            return Ok(Progress::Done);
        }
        if self.blocked {
            return Ok(Progress::Waits);
        }
        match calls.write(flow, &self.buffer[self.accepted..]) {
            Ok(count) => {
                self.accepted += count;
                self.blocked = self.accepted < self.buffer.len();
                Ok(Progress::Fed)
            }
            Err(CallError::NoFlow(_) | CallError::Closed(_)) => Ok(Progress::Done),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

fn readable(file: &File) -> io::Result<bool> {
    let mut entry = [poll_input(file.as_fd())];
    poll(&mut entry, Some(Duration::ZERO))?;
    Ok(entry[0].revents != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};
    use weftwire_core::inspect::Inspect;
    use weftwire_core::{Arrivals, Connections, Deadline, Function, MacAddress, Outbox, Time};

    /// A flow whose buffer takes `room` bytes.
    #[derive(Default)]
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
        closed: bool,
    }

    impl Function for Narrow {
        fn frames(&mut self, _: Time, arrivals: &mut Arrivals, _: &mut Outbox) {
            arrivals.clear();
        }

        fn fire(&mut self, _: Time, _: &mut Outbox) {}

        fn next_deadline(&self) -> Option<Deadline<'_>> {
            None
        }

        fn connections(&mut self) -> Option<&mut dyn Connections> {
            Some(self)
        }
    }

    impl Connections for Narrow {
        fn connect(&mut self, _: Time, _: &Endpoints, _: &mut Outbox) -> Result<FlowId, CallError> {
            Ok(FlowId(1))
        }

        fn write(&mut self, _: Time, _: FlowId, bytes: &[u8], _: &mut Outbox) -> Result<usize, CallError> {
            let count = bytes.len().min(self.room);
            self.taken.extend_from_slice(&bytes[..count]);
            self.room -= count;
            Ok(count)
        }

        fn close(&mut self, _: Time, _: FlowId, _: &mut Outbox) -> Result<(), CallError> {
            self.closed = true;
            Ok(())
        }

        fn abort(&mut self, _: Time, flow: FlowId, _: &mut Outbox) -> Result<(), CallError> {
            Err(CallError::NoFlow(flow))
        }
    }

    impl Inspect for Narrow {}

    /// One turn.
    fn work(application: &mut Transfer, flow: &mut Narrow) -> bool {
        application.work(&mut Calls { function: flow, now: Time::ZERO, out: &mut Outbox::new() })
    }

    fn endpoints() -> Endpoints {
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        let (local_address, remote_address, local_mac, remote_mac) =
            (address, address, MacAddress::UNSPECIFIED, MacAddress::UNSPECIFIED);
        Endpoints {
            protocol: 6,
            local_address,
            local_port: 1,
            remote_address,
            remote_port: 2,
            local_mac,
            remote_mac,
            vlan: None,
        }
    }

    #[test]
    fn the_first_flow_of_the_peer_is_taken_once() {
        let mut flow = Narrow { room: 100, ..Narrow::default() };
        let mut application = Transfer::default();
        application.end_with_connections();
        application.await_peer();
        application.set_source(File::open("/dev/null").unwrap());
        assert!(!work(&mut application, &mut flow) && !flow.closed && !application.is_over());
        application.opened(FlowId(6), None);
        application.ended(FlowId(6));
        assert!(!work(&mut application, &mut flow) && !flow.closed && !application.is_over(), "it was refused");
        application.opened(FlowId(7), None);
        application.opened(FlowId(8), None);
        while work(&mut application, &mut flow) {}
        assert!(flow.closed, "there is nothing to send");
        application.ended(FlowId(7));
        assert!(application.is_over(), "the second one is not its own");
    }

    #[test]
    fn a_file_goes_whole_through_a_narrow_flow_which_is_then_closed() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let path = std::env::temp_dir().join(format!("weft-source-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(&bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();

        let mut flow = Narrow::default();
        let mut application = Transfer::new(vec![endpoints()]);
        application.end_with_connections();
        application.set_source(file);
        application.connect(&mut Calls { function: &mut flow, now: Time::ZERO, out: &mut Outbox::new() }).unwrap();
        let mut rounds = 0;
        while !flow.closed {
            flow.room = 30_000;
            application.released(FlowId(1), 1);
            while work(&mut application, &mut flow) {}
            rounds += 1;
            assert!(rounds < 20, "no progress");
        }
        assert!(flow.taken == bytes);
        assert!(rounds >= 7, "more was written than there was room for");
        assert!(!application.is_over());
        application.ended(FlowId(1));
        assert!(application.is_over());
    }
}
