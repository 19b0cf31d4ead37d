//! Lines for people, written by a thread of their own: whoever reads them slowly holds up no frame. Lines for which there is no
//! room are lost, and counted.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Lines that may wait for the writer.
const WAITING: usize = 4_096;

/// The end that has something to say.
pub(crate) struct Messages {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
    /// Lines lost since the last one that was not.
    lost: u64,
}

impl Messages {
    /// Lines go to `out` from now on.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(out: Box<dyn Write + Send>) -> io::Result<Messages> {
        let (lines, waiting) = sync_channel(WAITING);
        let writer = std::thread::Builder::new().name("messages".into()).spawn(move || write(out, &waiting))?;
        Ok(Messages { lines: Some(lines), writer: Some(writer), lost: 0 })
    }

    /// Says a line, which has no end of line in it.
    pub(crate) fn say(&mut self, line: String) {
        let Some(lines) = &self.lines else { return };
        if self.lost > 0 && lines.try_send(lost(self.lost)).is_ok() {
            self.lost = 0;
        }
        if self.lost > 0 || lines.try_send(line).is_err() {
            self.lost += 1;
        }
    }
}

/// What was said is written before it is gone.
impl Drop for Messages {
    fn drop(&mut self) {
        if let Some(lines) = self.lines.take()
            && self.lost > 0
        {
            let _ = lines.send(lost(self.lost));
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn lost(count: u64) -> String {
    format!("{count} lines are missing here, as they were not read in time")
}

fn write(mut out: Box<dyn Write + Send>, lines: &Receiver<String>) {
    for line in lines {
        // Nobody is left to tell if standard error is closed.
        let _ = writeln!(out, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    /// A reader that reads when it is let.
    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Slow {
        fn text(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.text().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_in_order_and_what_is_lost_is_told() {
        let slow = Slow::default();
        let reader = slow.text();
        let mut messages = Messages::start(Box::new(slow.clone())).unwrap();
        // One line may be in the writer's hands.
        let said = WAITING + 10;
        for number in 0..said {
            messages.say(number.to_string());
        }
        drop(reader);
        drop(messages);
        let text = String::from_utf8(slow.text().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let kept = lines.iter().take_while(|line| line.parse::<usize>().is_ok()).count();
        assert!(lines[..kept].iter().zip(0..).all(|(line, number)| line.parse() == Ok(number)));
        let missing = said - kept;
        assert!((9..=10).contains(&missing), "{missing}");
        assert_eq!(lines[kept..], [lost(missing as u64)]);
    }
}
