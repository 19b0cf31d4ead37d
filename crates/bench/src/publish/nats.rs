//! NATS: its server, and a client that speaks as much of its text protocol as this takes.

use super::{Lab, Load, Outcome, Receipts, System, stamp};
use anyhow::{Context as _, Result, ensure};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};
use weftwire_testbed::Running;

const SERVER: &str = "10.0.1.254:4222";
const QUIET: Duration = Duration::from_secs(2);

pub struct Nats<'a> {
    lab: &'a Lab,
    _server: Running,
}

impl Nats<'_> {
    pub fn new(lab: &Lab) -> Result<Nats<'_>> {
        let server = lab.middle.spawn(&["nats-server", "--addr", "0.0.0.0", "--port", "4222"])?;
        Lab::wait_for_server(&lab.source, SERVER)?;
        Ok(Nats { lab, _server: server })
    }
}

/// Says hello and waits until all that was said has been heard.
fn hello(stream: &TcpStream, words: &str) -> Result<BufReader<TcpStream>> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(QUIET))?;
    let mut reader = BufReader::with_capacity(1 << 18, stream.try_clone()?);
    (&*stream).write_all(format!("CONNECT {{\"verbose\":false}}\r\n{words}PING\r\n").as_bytes())?;
    let mut line = String::new();
    while !line.starts_with("PONG") {
        line.clear();
        ensure!(reader.read_line(&mut line)? > 0, "the server closed the connection");
    }
    Ok(reader)
}

impl System for Nats<'_> {
    fn name(&self) -> &'static str {
        "NATS"
    }

    fn has_flow_control(&self) -> bool {
        true
    }

    fn run(&mut self, load: Load) -> Result<Outcome> {
        let connect = |host: &weftwire_testbed::Namespace| -> Result<TcpStream> {
            Ok(host.connect(SERVER.parse()?, Duration::from_secs(5))??)
        };
        let (sink, source) = (connect(&self.lab.sink)?, connect(&self.lab.source)?);
        let mut reader = hello(&sink, "SUB bench 1\r\n")?;
        hello(&source, "")?;
        let start = Instant::now();
        let now = move || start.elapsed().as_nanos() as u64;
        let receiver = thread::spawn(move || {
            let (mut receipts, mut line, mut payload) = (Receipts::new(load), String::new(), Vec::new());
            while !receipts.done {
                line.clear();
                // Nothing for so long, or the end: the rest is lost.
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                let Some(length) = line.strip_prefix("MSG ").and_then(|rest| rest.trim().rsplit(' ').next()) else {
                    continue;
                };
                payload.resize(length.parse::<usize>().context("the length of a message")? + 2, 0);
                reader.read_exact(&mut payload)?;
                receipts.add(now(), &payload);
            }
            Ok::<_, anyhow::Error>(receipts.outcome())
        });
        let mut writer = BufWriter::with_capacity(1 << 16, &source);
        let mut payload = vec![0; load.size];
        let head = format!("PUB bench {}\r\n", load.size);
        for number in 0..load.count {
            if let Some(rate) = load.rate {
                let due = Duration::from_nanos(u64::from(number) * 1_000_000_000 / rate);
                thread::sleep(due.saturating_sub(start.elapsed()));
            }
            stamp(&mut payload, now(), u64::from(number));
            for part in [head.as_bytes(), &payload, b"\r\n"] {
                writer.write_all(part)?;
            }
            if load.rate.is_some() {
                writer.flush()?;
            }
        }
        writer.flush()?;
        receiver.join().map_err(|_| anyhow::anyhow!("the subscriber panicked"))?
    }
}
