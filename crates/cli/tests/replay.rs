//! `weft replay`, `weft report`, `weft explain` and `weft graph` from the outside, on the SYN proxy among the examples.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use weftwire_capture::{CaptureReader, CaptureRecord, CaptureWriter};
use weftwire_core::{LinkType, Time};
use weftwire_testbed::{Running, wait_for};

const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/syn-proxy.xl");
const START: i64 = 1_700_000_000_000_000_000;

fn weft(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).output().expect("the command starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    folder
}

/// A SYN from 10.0.0.1:4000 to 10.0.0.2:80 with right checksums.
fn syn() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0x26, 0xce, 10, 0, 0, 1, 10, 0, 0, 2]);
    let mut tcp = vec![0x0f, 0xa0, 0, 80, 0, 0, 3, 232, 0, 0, 0, 0, 0x50, 2, 0xfa, 0xf0, 0, 0, 0, 0];
    let pseudo = [10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, 20];
    let words = pseudo.iter().chain(&tcp).copied().collect::<Vec<u8>>();
    let mut sum: u32 = words.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    sum = (sum & 0xffff) + (sum >> 16);
    let [high, low] = (!(sum as u16)).to_be_bytes();
    (tcp[16], tcp[17]) = (high, low);
    frame.extend(tcp);
    frame
}

/// A capture with one SYN.
fn capture(folder: &Path) -> String {
    let path = folder.join("client.pcap");
    let file = File::create(&path).expect("the folder is there");
    let mut writer = CaptureWriter::pcap(file, LinkType::Ethernet).expect("no I/O error");
    writer.write(Time::from_nanoseconds(START), 0, &syn(), None).expect("the frame is right");
    path.to_string_lossy().into_owned()
}

fn replay(folder: &Path, out: &str, input: &str) -> (Output, PathBuf, PathBuf) {
    let (capture, trace) = (folder.join(format!("{out}.pcapng")), folder.join(format!("{out}.jsonl")));
    let output = weft(&[
        "replay",
        IMAGE,
        "--port",
        &format!("1={input}"),
        "--port",
        "2=none",
        "--out",
        &capture.to_string_lossy(),
        "--trace",
        &trace.to_string_lossy(),
    ]);
    (output, capture, trace)
}

fn records(path: &Path) -> Vec<CaptureRecord> {
    let mut reader = CaptureReader::new(File::open(path).expect("it was written")).expect("it is a capture");
    std::iter::from_fn(|| reader.next_record().expect("it is whole")).collect()
}

#[test]
fn a_replay_answers_in_the_capture_s_time_and_does_so_again() {
    let folder = folder("replay");
    let input = capture(&folder);
    let (output, first, trace) = replay(&folder, "first", &input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = records(&first);
    assert_eq!(seen.len(), 2, "the SYN and the proxy's answer");
    assert_eq!((seen[0].time.nanoseconds(), seen[0].comment.as_deref()), (START, None));
    assert_eq!((seen[1].time.nanoseconds(), seen[1].comment.as_deref()), (START, Some("sent")));
    assert!(fs::read_to_string(&trace).expect("it was written").contains("\"event\":\"packet\""));

    let (_, second, again) = replay(&folder, "second", &input);
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    assert_eq!(fs::read(&trace).unwrap(), fs::read(&again).unwrap());
    // The replay's own output is an input: what the function sent is not fed in again.
    let (_, third, _) = replay(&folder, "third", &first.to_string_lossy());
    assert_eq!(fs::read(&first).unwrap(), fs::read(&third).unwrap());
    let left = fs::read_dir(&folder).unwrap().filter_map(Result::ok);
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().ends_with(".partial")));
}

#[test]
fn a_report_is_made_of_it() {
    let folder = folder("report");
    let (_, out, _) = replay(&folder, "out", &capture(&folder));
    let page = folder.join("page.html");
    let (out, page) = (out.to_string_lossy(), page.to_string_lossy());
    let output = weft(&["report", "--capture", &out, "--image", IMAGE, "--out", &page]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let html = fs::read_to_string(&*page).unwrap();
    for part in ["10.0.0.1:4000", "SYN ACK seq 0 ack 1", "class=\"weft-graph\"", "State listening (initial)"] {
        assert!(html.contains(part), "{part}");
    }
    let output = weft(&["report", "--capture", &out, "--flow", "2"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("1  10.0.0.1:4000 - 10.0.0.2:80 tcp, 2 packets"), "{text}");
}

#[test]
fn machines_are_shown_in_every_form() {
    for (arguments, part) in [
        (["explain", IMAGE, "--format", "text"], "State listening (initial)"),
        (["explain", IMAGE, "--format", "markdown"], "| row | line | when | do | next |"),
        (["explain", IMAGE, "--format", "html"], "<!DOCTYPE html>"),
        (["graph", IMAGE, "--format", "svg"], "<svg xmlns="),
        (["graph", IMAGE, "--format", "dot"], "digraph \"syn_proxy\""),
        (["graph", IMAGE, "--format", "mermaid"], "stateDiagram-v2"),
    ] {
        let output = weft(&arguments);
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains(part), "{arguments:?}");
    }
}

#[test]
fn what_can_not_be_replayed_is_said() {
    let folder = folder("refused");
    let input = capture(&folder);
    for (port, reason) in [("1=/nowhere.pcap", "cannot open /nowhere.pcap"), ("0=none", "from 1 to 65535")] {
        let output = weft(&["replay", IMAGE, "--port", port]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(reason), "{text}");
    }
    let port = format!("1={input}");
    let twice = weft(&["replay", IMAGE, "--port", &port, "--port", "1=none"]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("given twice"));
}

/// A pcap file of frames, each with the length it had when it was seen.
fn pcap(path: &Path, frames: &[(&[u8], u32)]) -> String {
    let word = u32::to_le_bytes;
    let mut bytes: Vec<u8> = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 262_144, 1].into_iter().flat_map(word).collect();
    for (number, (frame, original)) in (0..).zip(frames) {
        bytes.extend([1_700_000_000, number, frame.len() as u32, *original].into_iter().flat_map(word));
        bytes.extend_from_slice(frame);
    }
    fs::write(path, bytes).expect("the folder is there");
    path.to_string_lossy().into_owned()
}

/// The number behind a line of what a command tells.
fn told(output: &Output, what: &str) -> u64 {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.starts_with(what));
    line.and_then(|line| line.split_whitespace().last()?.parse().ok()).unwrap_or(0)
}

/// On the host that sent it, a frame is captured before its hardware has completed the checksum.
#[test]
fn captures_of_hosts_with_checksum_offload_replay() {
    let folder = folder("replay-partial");
    let (mut partial, mut wrong) = (syn(), syn());
    let pseudo = [10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, 20_u8];
    let sum: u32 = pseudo.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    partial[14 + 20 + 16..][..2].copy_from_slice(&(sum as u16).to_be_bytes());
    wrong[14 + 20 + 16] ^= 1;
    let input = pcap(&folder.join("host.pcap"), &[(&partial, 54), (&wrong, 54)]);
    let run = |checksums: &str, input: &str, out: &str| {
        let out = folder.join(out).to_string_lossy().into_owned();
        let port = format!("1={input}");
        let mut words = vec!["replay", IMAGE, "--port", &port, "--port", "2=none", "--out", &out];
        if !checksums.is_empty() {
            words.extend(["--checksums", checksums]);
        }
        let output = weft(&words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let counts = ["frames out", "dropped: bad_checksum", "frames with checksum left to hardware"];
        counts.map(|what| told(&output, what))
    };
    assert_eq!(run("", &input, "default.pcapng"), [1, 1, 1]);
    assert_eq!(run("partial", &input, "partial.pcapng"), [1, 1, 1]);
    assert_eq!(run("verify", &input, "verify.pcapng"), [0, 2, 0]);
    assert_eq!(run("ignore", &input, "ignore.pcapng"), [2, 0, 0], "a repeated SYN is answered again");

    // What was written is whole, says what was left undone, and replays to the same.
    let seen = records(&folder.join("default.pcapng"));
    assert_eq!((seen[0].bytes == syn(), seen[0].comment.as_deref()), (true, Some("checksum partial")));
    assert_eq!(seen[1].comment.as_deref(), Some("sent"));
    let again = folder.join("default.pcapng");
    assert_eq!(run("", &again.to_string_lossy(), "again.pcapng"), [1, 1, 0]);
    assert_eq!(fs::read(&again).unwrap(), fs::read(folder.join("again.pcapng")).unwrap());
}

#[test]
fn frames_that_the_capture_cut_are_told_from_damaged_ones() {
    let folder = folder("replay-cut");
    let (frame, padded) = (syn(), [syn(), vec![0; 6]].concat());
    // Cut in the TCP header; cut in the padding; damaged on its way.
    let input = pcap(&folder.join("cut.pcap"), &[(&frame[..40], 54), (&padded[..57], 60), (&frame[..40], 40)]);
    let (output, capture, _) = replay(&folder, "out", &input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts = ["left out, cut short by the capture", "dropped: truncated", "frames in", "frames out"];
    assert_eq!(counts.map(|what| told(&output, what)), [1, 1, 2, 1]);
    assert_eq!(records(&capture).len(), 3);
}

#[test]
fn the_time_replayed_is_the_time_given() {
    let folder = folder("replay-until");
    let port = format!("1={}", capture(&folder));
    for (until, words) in [
        ("12ms", "replayed 0.012000000 s of virtual time; the time given was over"),
        ("12s", "replayed 5.000000000 s of virtual time; nothing was left to do"),
    ] {
        let output = weft(&["replay", IMAGE, "--port", &port, "--port", "2=none", "--until", until]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(words), "{text}");
    }
}

/// A replay that would take days, interrupted when it has begun to write.
#[test]
fn an_interrupted_replay_leaves_no_file() {
    let folder = folder("replay-interrupted");
    let source = folder.join("endless.xl");
    let text = "machine endless;\n\
        flow key five_tuple;\n\
        timer tick;\n\
        initial state counting {\n\
            on packet { set tick in 1us; }\n\
            on tick { set tick in 1us; }\n\
        }\n";
    fs::write(&source, text).expect("the folder is there");
    let (input, out) = (capture(&folder), folder.join("out.pcapng"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.arg("replay").arg(&source).args(["--port", &format!("1={input}"), "--until", "100h", "--out"]).arg(&out);
    let mut replay = Running::start(command).expect("the command starts");
    let partial = folder.join(format!("out.pcapng.{}.partial", replay.pid()));
    let begun =
        wait_for("the output's beginning", Duration::from_secs(20), || partial.exists() || !replay.is_running());
    begun.expect("the replay begins to write");
    let ended = replay.interrupt().expect("the replay ends");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("interrupted at") && ended.stderr.contains("nothing was written"),
        "{}",
        ended.stderr
    );
    assert!(!out.exists() && !partial.exists());
}

/// The capture among the examples was made by `weft run` between two kernels.
#[test]
fn the_capture_of_a_real_run_replays_to_the_same_frames() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/captures/syn-proxy.pcapng");
    let out = folder("replay-example").join("out.pcapng");
    let port = |number: u8| format!("{number}={},interface=port{number}", capture.display());
    let output = out.to_string_lossy();
    let replayed = weft(&["replay", IMAGE, "--seed", "1", "--port", &port(1), "--port", &port(2), "--out", &output]);
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
    let (live, again) = (support::sent(&capture).expect("a capture"), support::sent(&out).expect("a capture"));
    assert!(live.len() > 30 && live == again, "{} frames live, {} replayed", live.len(), again.len());
}
