//! Ports that are no interfaces, and runs on them.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use weftwire_core::buffer::Pool;
use weftwire_core::{Arrivals, Frame, Function, LinkType, Port};
use weftwire_linux::FramePort;
use weftwire_linux::application::Application;
use weftwire_linux::port::PortCounters;
use weftwire_linux::recorder::Recorder;
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::StopSignal;

/// What comes and goes at a port.
pub trait Traffic {
    /// Puts the next batch behind what has arrived.
    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals);

    /// These frames leave.
    fn send(&mut self, _frames: &[Frame<'_>]) {}
}

/// A port that is always asked.
struct Ready<T> {
    traffic: T,
    /// It has something to read, which nobody does.
    readable: UnixStream,
}

impl<T: Traffic> FramePort for Ready<T> {
    fn link(&self) -> LinkType {
        LinkType::Ethernet
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }

    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        self.traffic.receive(port, pool, arrivals);
        Ok(())
    }

    fn send(&mut self, frames: &[Frame<'_>]) {
        self.traffic.send(frames);
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

/// Runs a function at ports of these numbers, until the application is over.
pub fn run<T: Traffic + 'static>(
    traffic: impl IntoIterator<Item = (u16, T)>,
    application: &mut dyn Application,
    function: &mut dyn Function,
) {
    let open = |(number, traffic)| {
        let (readable, mut other) = UnixStream::pair().expect("a pair of sockets");
        other.write_all(b"!").expect("a byte fits");
        OpenPort { port: Port(number), name: "ready".into(), device: Box::new(Ready { traffic, readable }) }
    };
    let run = Run {
        succession: None,
        ports: traffic.into_iter().map(open).collect(),
        application,
        recorder: Recorder::new(),
        control: None,
        commands: None,
        flows: Vec::new(),
        stop: StopSignal::never().expect("a descriptor"),
        messages: Box::new(io::sink()),
        options: RunOptions::default(),
    };
    run.run(function).expect("a run");
}
