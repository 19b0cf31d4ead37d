//! The real `simple_switch`, where there is one: packets from files, copies into files.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the test runs a program beside it")]

use super::cases::{ITCH, formats, program, switches, udp};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weftwire_target::{Targets, bmv2, commands};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (second, frame) in frames.iter().enumerate() {
        for word in [second as u32, 0, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

fn frames(pcap: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut rest = pcap.get(24..).unwrap_or_default();
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some(frame) = rest.get(16..16 + length) else { break };
        frames.push(frame.to_vec());
        rest = &rest[16 + length..];
    }
    frames
}

#[test]
fn the_real_switch_sends_the_same_copies() {
    if Command::new("simple_switch").arg("--version").output().is_err() {
        eprintln!("SKIPPED: simple_switch is not on PATH; the programs were not run on a real switch");
        return;
    }
    let found = program(
        &formats(ITCH),
        "add_order.stock == \"GOOGL\" and add_order.price > 50 : fwd(1); add_order.side == \"B\" : fwd(2);",
        &Targets::default(),
    );
    let order = |symbol: &str, side: u8, price: u32| {
        let mut message = vec![0, 36, b'A'];
        message.extend([0; 18]);
        message.push(side);
        message.extend([0, 0, 0, 1]);
        message.extend(format!("{symbol:<8}").as_bytes());
        message.extend((price * 10_000).to_be_bytes());
        message
    };
    let packet = |messages: &[Vec<u8>]| {
        let mut payload = vec![0; 18];
        payload.extend((messages.len() as u16).to_be_bytes());
        payload.extend(messages.concat());
        udp(26400, &payload)
    };
    let inputs = [
        packet(&[order("GOOGL", b'S', 60)]),
        packet(&[order("GOOGL", b'S', 60), order("AAPL", b'B', 1), order("MSFT", b'S', 9)]),
        packet(&[order("GOOGL", b'S', 50)]),
    ];
    let mut wanted = vec![Vec::new(); 3];
    let [mut model, ..] = switches(&found);
    for frame in &inputs {
        for (port, bytes) in model.packet(frame, 1).copies {
            wanted[usize::from(port)].push(bytes);
        }
    }
    let folder = std::env::temp_dir().join(format!("weftwire-simple-switch-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("switch.json"), bmv2::json(&found)).expect("written");
    for port in 0..3 {
        let frames = if port == 0 { &inputs[..] } else { &[] };
        fs::write(folder.join(format!("p{port}_in.pcap")), pcap(frames)).expect("written");
    }
    let arguments =
        ["--use-files", "5", "--thrift-port", "29090", "-i", "0@p0", "-i", "1@p1", "-i", "2@p2", "switch.json"];
    let switch = Command::new("simple_switch").args(arguments).current_dir(&folder).stdout(Stdio::null()).spawn();
    let running = Running(switch.expect("it starts"));
    let end = Instant::now() + Duration::from_secs(30);
    while !load(&commands::text(&found)) {
        assert!(Instant::now() < end, "simple_switch_CLI could not load the entries");
    }
    let sent = |folder: &Path| -> Vec<Vec<Vec<u8>>> {
        let of = |port| frames(&fs::read(folder.join(format!("p{port}_out.pcap"))).unwrap_or_default());
        (0..3).map(of).collect()
    };
    while sent(&folder) != wanted {
        assert!(Instant::now() < end, "{:?} instead of {wanted:?}", sent(&folder));
        std::thread::yield_now();
    }
    drop(running);
    let _ = fs::remove_dir_all(&folder);
}

/// Gives the command line its commands; false if the switch is not there yet.
fn load(commands: &str) -> bool {
    let cli = Command::new("simple_switch_CLI")
        .args(["--thrift-port", "29090"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut cli) = cli else { return false };
    if let Some(input) = cli.stdin.as_mut() {
        let _ = input.write_all(commands.as_bytes());
    }
    cli.wait().is_ok_and(|status| status.success())
}
