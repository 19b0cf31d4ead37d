//! Connections joined with one input and one output, one after the other: `weft cat` and `weft listen`.

use super::joint::{End, Outcome, Totals};
use super::joints::{Side, Wanted};
use crate::error::LinuxError;
use crate::system::pipe_without_waiting;
use std::fs::File;
use std::io;
use std::time::Duration;
use weftwire_core::{CallError, Endpoints, Listen};

/// Most connections that wait while another one is served.
const MOST_WAITING: usize = 16;

/// One input and one output, for one connection at a time.
#[derive(Debug)]
pub struct Pipe {
    input: File,
    output: File,
    connect: Option<(Endpoints, Option<Duration>)>,
    listens: Option<Listen>,
    /// Connections are taken one after the other, without end.
    many: bool,
    taken: bool,
    /// A connection has the input and the output.
    in_use: bool,
    /// How connections ended that have not been asked for yet.
    ended: Option<(Option<Endpoints>, Outcome, Totals)>,
    tell: fn(Option<&Endpoints>, &Outcome, &Totals),
}

impl Pipe {
    /// Opens one connection, within that time if one is given.
    pub fn connect(input: File, output: File, endpoints: Endpoints, within: Option<Duration>) -> Pipe {
        Pipe { connect: Some((endpoints, within)), ..Pipe::new(input, output) }
    }

    /// Takes the first connection that somebody else opens; with `tell` any number of them, one after the other, each of which it is
    /// called for when that is over.
    pub fn listen(
        input: File,
        output: File,
        listen: Listen,
        tell: Option<fn(Option<&Endpoints>, &Outcome, &Totals)>,
    ) -> Pipe {
        let many = tell.is_some();
        Pipe { listens: Some(listen), many, tell: tell.unwrap_or(|_, _, _| {}), ..Pipe::new(input, output) }
    }

    fn new(input: File, output: File) -> Pipe {
        let output = pipe_without_waiting(&output).unwrap_or(output);
        Pipe {
            input,
            output,
            connect: None,
            listens: None,
            many: false,
            taken: false,
            in_use: false,
            ended: None,
            tell: |_, _, _| {},
        }
    }

    /// How the last connection ended, if there was one.
    pub fn outcome(self) -> Option<(Option<Endpoints>, Outcome, Totals)> {
        self.ended
    }

    fn end(&mut self) -> io::Result<End> {
        let end = End::files(self.input.try_clone()?, self.output.try_clone()?);
        (self.in_use, self.taken) = (true, true);
        Ok(end)
    }
}

impl Side for Pipe {
    const SEES_OFF: bool = true;

    fn listens(&self) -> Vec<Listen> {
        self.listens.into_iter().collect()
    }

    fn wants(&self) -> bool {
        self.connect.is_some()
    }

    fn next_wanted(&mut self) -> Option<Wanted> {
        let (endpoints, within) = self.connect.take()?;
        match self.end() {
            Ok(end) => Some(Wanted { endpoints, within, end }),
            Err(error) => {
                self.over(0, Some(endpoints), Outcome::Broken(error), Totals::default());
                None
            }
        }
    }

    fn refused(&mut self, _: Wanted, error: CallError) -> Result<(), LinuxError> {
        Err(error.into())
    }

    fn takes(&mut self, connections: usize, without_end: usize) -> bool {
        if self.many { without_end < MOST_WAITING } else { connections == 0 && !self.taken }
    }

    fn end_for(&mut self, _: Option<&Endpoints>) -> io::Result<Option<End>> {
        if self.in_use { Ok(None) } else { self.end().map(Some) }
    }

    fn over(&mut self, _: u64, endpoints: Option<Endpoints>, outcome: Outcome, totals: Totals) {
        (self.tell)(endpoints.as_ref(), &outcome, &totals);
        (self.in_use, self.taken) = (false, true);
        self.ended = Some((endpoints, outcome, totals));
    }

    fn is_over(&self) -> bool {
        !self.many && self.taken && !self.in_use
    }
}
