//! The library's publisher and subscriber, with the switch between them.

use super::{Lab, Load, Outcome, Receipts, System, stamp};
use anyhow::Result;
use std::thread;
use std::time::{Duration, Instant};
use weftwire_publish::client::{GROUP, Publisher, Subscriber};
use weftwire_publish::message::Message;
use weftwire_publish::topic::Topic;

/// Without a message for so long, nothing more comes.
const QUIET: Duration = Duration::from_secs(1);
/// So many messages are handed to the kernel at once when it has to be fast.
const TOGETHER: u32 = 64;

pub struct Library<'a> {
    lab: &'a Lab,
    publisher: Publisher,
    topic: Topic,
}

impl Library<'_> {
    pub fn new(lab: &Lab) -> Result<Library<'_>> {
        let publisher = lab.source.enter(|| Publisher::open([10, 0, 1, 1].into(), GROUP))??;
        Ok(Library { lab, publisher, topic: Topic::new("bench")? })
    }
}

impl System for Library<'_> {
    fn name(&self) -> &'static str {
        "weft, library"
    }

    fn has_flow_control(&self) -> bool {
        false
    }

    fn run(&mut self, load: Load) -> Result<Outcome> {
        let start = Instant::now();
        let now = move || start.elapsed().as_nanos() as u64;
        // Not for longer: the bridge that is measured in turns wants the port for itself.
        let mut subscriber = self.lab.sink.enter(|| Subscriber::open([10, 0, 2, 1].into(), GROUP))??;
        let receiver = thread::spawn(move || {
            let mut receipts = Receipts::new(load);
            let mut heard = Instant::now();
            while !receipts.done && heard.elapsed() < QUIET {
                let each = |message: &Message<'_>, _| receipts.add(now(), message.payload.unwrap_or_default());
                if subscriber.receive(QUIET, each)? > 0 {
                    heard = Instant::now();
                }
            }
            Ok::<_, std::io::Error>(receipts.outcome())
        });
        // When latency counts, each goes alone, and is stamped after the wait for its turn.
        let alone = load.rate.filter(|rate| *rate <= 1_000);
        let together = if alone.is_some() { 1 } else { TOGETHER };
        self.publisher.set_rate(load.rate.filter(|_| alone.is_none()));
        let mut payload = vec![0; load.size];
        for number in 0..load.count {
            if let Some(rate) = alone {
                let due = Duration::from_nanos(u64::from(number) * 1_000_000_000 / rate);
                thread::sleep(due.saturating_sub(start.elapsed()));
            }
            stamp(&mut payload, now(), u64::from(number));
            self.publisher.queue(&Message::new(self.topic, &payload))?;
            if (number + 1) % together == 0 || number + 1 == load.count {
                self.publisher.flush()?;
            }
        }
        Ok(receiver.join().map_err(|_| anyhow::anyhow!("the subscriber panicked"))??)
    }
}
