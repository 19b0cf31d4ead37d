//! The application's side of a run: what becomes of the connections that a function carries.
//!
//! The [run loop](crate::run_loop) hands an [`Application`] what the function puts out for it, and lets it make calls in between. There
//! are these:
//!
//! - `()`: no application;
//! - [`Transfer`]: `weft run --connect --send --receive`, files over connections;
//! - [`Joints`]: connections joined with descriptors. Where these come from says a [`Side`]: [`Pipe`] for `weft cat` and `weft
//!   listen`, [`Proxy`] for `weft proxy`, and one for the sockets of a [`crate::transport::Transport`].

mod joint;
mod joints;
mod pipe;
mod ports;
mod proxy;
mod readiness;
mod sockets;
mod transfer;

pub use joint::{End, Outcome, Totals};
pub use joints::{Joints, Side, Wanted};
pub use pipe::Pipe;
pub use proxy::{Proxy, ProxySide, ProxySummary};
pub(crate) use sockets::{BACKLOG, Ending, Open, Request, Sockets};
pub use transfer::Transfer;

use crate::error::LinuxError;
use std::io;
use std::os::fd::BorrowedFd;
use weftwire_core::control::change;
use weftwire_core::{CallError, Change, Connections, Endpoints, FlowId, Listen, ORPHAN, Outbox, Time};

/// What an application does with the connections of a function that runs. The loop calls it in this order:
///
/// - once: [`listens`](Application::listens), before the first input;
/// - for what the function puts out: [`opened`](Application::opened), [`notified`](Application::notified),
///   [`delivered`](Application::delivered), [`released`](Application::released), [`ended`](Application::ended);
/// - every turn: [`connect`](Application::connect) if it [`connects`](Application::connects), and [`work`](Application::work);
/// - when nothing is left to do, it waits for [`descriptor`](Application::descriptor) and [`deadline`](Application::deadline);
/// - until the application [is over](Application::is_over); or it is asked to stop: [`interrupt`](Application::interrupt);
/// - at last: [`finish`](Application::finish).
pub trait Application {
    /// Where connections of others are taken, from the beginning on.
    fn listens(&self) -> Vec<Listen> {
        Vec::new()
    }

    /// Whether there are connections to open now.
    fn connects(&self) -> bool {
        false
    }

    /// Opens them.
    ///
    /// # Errors
    /// The run can't go on without one that was refused.
    fn connect(&mut self, _calls: &mut Calls<'_>) -> Result<(), LinuxError> {
        Ok(())
    }

    /// A flow has come to be by a packet.
    fn opened(&mut self, _flow: FlowId, _endpoints: Option<&Endpoints>) {}

    /// The function notifies the application.
    fn notified(&mut self, _flow: FlowId, _notice: &str) {}

    /// Bytes have come.
    fn delivered(&mut self, _flow: FlowId, _bytes: &[u8]) {}

    /// So many bytes written are no longer in the flow's buffer.
    fn released(&mut self, _flow: FlowId, _length: usize) {}

    /// The flow is gone.
    fn ended(&mut self, _flow: FlowId) {}

    /// Does what can be done without waiting. Returns whether it is worth calling again at once.
    fn work(&mut self, _calls: &mut Calls<'_>) -> bool {
        false
    }

    /// What is readable when there is work.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When there is work by itself, in the function's time.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Whether the run may end.
    fn is_over(&self) -> bool {
        false
    }

    /// The run was asked to stop, and will.
    fn interrupt(&mut self, _calls: &mut Calls<'_>) {}

    /// Lets go of what is buffered for others.
    fn flush(&mut self) {}

    /// Ends its streams.
    ///
    /// # Errors
    /// The last error of reading or writing one.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No application.
impl Application for () {}

/// How an application makes calls: [`Connections`], at an instant.
pub struct Calls<'a> {
    pub(crate) function: &'a mut dyn Connections,
    pub(crate) now: Time,
    pub(crate) out: &'a mut Outbox,
}

impl Calls<'_> {
    fn connect(&mut self, endpoints: &Endpoints) -> Result<FlowId, CallError> {
        self.function.connect(self.now, endpoints, self.out)
    }

    fn listen(&mut self, local: &Listen) -> Result<(), CallError> {
        self.function.listen(self.now, local, self.out)
    }

    fn write(&mut self, flow: FlowId, bytes: &[u8]) -> Result<usize, CallError> {
        self.function.write(self.now, flow, bytes, self.out)
    }

    /// These do nothing for a flow that has ended in this very instant.
    fn close(&mut self, flow: FlowId) {
        let _ = self.function.close(self.now, flow, self.out);
    }

    fn abort(&mut self, flow: FlowId) {
        let _ = self.function.abort(self.now, flow, self.out);
    }

    fn accept(&mut self, flow: FlowId) {
        let _ = self.function.accept(self.now, flow, self.out);
    }

    fn consumed(&mut self, flow: FlowId, length: usize) {
        let _ = self.function.consumed(self.now, flow, length, self.out);
    }

    /// Nobody reads any more what comes on a flow that was closed. Of a machine that does not ask for that it is no matter.
    fn abandon(&mut self, flow: FlowId) {
        let _ =
            change(self.function, self.now, Change::SetRegister { flow, register: ORPHAN.into(), value: 1 }, self.out);
    }

    /// The name of the state that a flow is in, if it is there.
    fn state(&self, flow: FlowId) -> Option<String> {
        self.function.flow(flow).map(|detail| detail.summary.state)
    }
}
