//! Changes of a running function by other threads of its process: they make ready what takes long, the run loop hands it in
//! between two batches, and what it replaces goes back to them to be freed.

use crate::error::LinuxError;
use crate::system::Waker;
use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use weftwire_core::control::{Answer, Done};
use weftwire_core::{Change, Command, ControlError};

/// What comes back: the answer, and what the change has replaced.
type Reply = (Answer, Vec<Box<dyn Any + Send>>);

/// The end of a thread that changes things.
pub struct CommandSender {
    commands: SyncSender<Command>,
    replies: Receiver<Reply>,
    waker: Arc<Waker>,
    number: u64,
}

/// The run loop's end.
pub struct CommandQueue {
    commands: Receiver<Command>,
    replies: SyncSender<Reply>,
    waker: Arc<Waker>,
}

/// A way into a run for commands, one at a time.
///
/// # Errors
/// The kernel has no descriptor left.
pub fn commands() -> Result<(CommandSender, CommandQueue), LinuxError> {
    let waker = Waker::new().map_err(|error| LinuxError::system("make a way for commands", error))?;
    let waker = Arc::new(waker);
    let ((commands, waiting), (replies, answered)) = (sync_channel(1), sync_channel(1));
    let sender = CommandSender { commands, replies: answered, waker: waker.clone(), number: 0 };
    Ok((sender, CommandQueue { commands: waiting, replies, waker }))
}

impl CommandSender {
    /// Has the function changed, and waits until that is done. `None`: the run is over.
    pub fn change(&mut self, change: Change, prepared: Box<dyn Any + Send>) -> Option<Result<Done, ControlError>> {
        self.number += 1;
        self.commands.send(Command::prepared(self.number, change, prepared)).ok()?;
        self.waker.wake();
        let (answer, replaced) = self.replies.recv().ok()?;
        drop(replaced);
        Some(answer.result)
    }
}

impl CommandQueue {
    /// The command that waits.
    pub(crate) fn next(&self) -> Option<Command> {
        match self.commands.try_recv() {
            Ok(command) => {
                self.waker.reset();
                Some(command)
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    /// Tells what became of it. A sender that is gone does not want to know.
    pub(crate) fn reply(&self, answer: Answer, replaced: Vec<Box<dyn Any + Send>>) {
        let _ = self.replies.try_send((answer, replaced));
    }

    /// Readable when a command waits.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.waker.descriptor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{poll, poll_input};
    use std::time::Duration;
    use weftwire_core::Time;

    #[test]
    fn a_command_wakes_the_loop_and_what_it_replaces_comes_back() {
        let (mut sender, queue) = commands().unwrap();
        assert!(queue.next().is_none());
        let other = std::thread::spawn(move || sender.change(Change::Rules { text: "new".into() }, Box::new(7_u32)));
        let mut ready = [poll_input(queue.descriptor())];
        poll(&mut ready, None).unwrap();
        let mut command = queue.next().expect("a command");
        assert_eq!((command.number, command.take_prepared::<u32>()), (1, Some(Box::new(7))));
        // It was read: the loop may sleep again.
        let mut ready = [poll_input(queue.descriptor())];
        poll(&mut ready, Some(Duration::ZERO)).unwrap();
        assert_eq!(ready[0].revents, 0);
        queue.reply(Answer { number: 1, at: Time::ZERO, result: Ok(Done::Done) }, vec![Box::new(6_u32)]);
        assert_eq!(other.join().unwrap(), Some(Ok(Done::Done)));
    }

    #[test]
    fn a_run_that_is_over_takes_no_commands() {
        let (mut sender, queue) = commands().unwrap();
        drop(queue);
        assert_eq!(sender.change(Change::Rules { text: String::new() }, Box::new(())), None);
    }
}
