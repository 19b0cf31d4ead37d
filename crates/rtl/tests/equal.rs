//! The RTL and the reference engine do the same with the same frames.
#![allow(clippy::disallowed_methods, reason = "a test of a platform reads files")]

use std::path::{Path, PathBuf};
use weftwire_core::{Frame, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, make};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};
use weftwire_rtl::{Clocks, Message, Model, ModelError, Response, encode};
use weftwire_text::{LoadError, Loader};

/// Reads the examples, or a program given here.
struct Files<'a>(Option<&'a str>);

impl Loader for Files<'_> {
    fn load(&self, name: &str, _: Option<&str>) -> Result<String, LoadError> {
        match self.0 {
            Some(text) if name == "program.xl" => Ok(text.into()),
            _ => Ok(std::fs::read_to_string(
                Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples")).join(name),
            )?),
        }
    }

    fn resolve(&self, name: &str, _: Option<&str>) -> String {
        name.to_owned()
    }
}

fn image(name: &str, text: Option<&str>) -> VerifiedImage {
    let compiled = compile(name, Dialect::Xl, &Files(text));
    let Some(image) = compiled.image else { panic!("{:?}", compiled.diagnostics) };
    image.verify().unwrap()
}

fn start(image: &VerifiedImage, pauses: Option<u32>) -> Option<Model> {
    match Model::start(image, &PathBuf::from(env!("CARGO_TARGET_TMPDIR")), pauses) {
        Ok(model) => Some(model),
        Err(error @ ModelError::NoVerilator(_)) if std::env::var_os("WEFT_REQUIRE_SYSTEM_TESTS").is_none() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % bound
    }
}

fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// UDP over IPv4 from one of a few hosts, either way, with this behind the UDP header.
fn datagram(host: u8, back: bool, checksum: bool, payload: &[u8]) -> Vec<u8> {
    let (near, far) = ([10, 0, 0, 1], [10, 0, 1, host]);
    let (near_port, far_port) = (7_u16.to_be_bytes(), (40_000 + u16::from(host)).to_be_bytes());
    let (source, destination) = if back { (near, far) } else { (far, near) };
    let ports = if back { [near_port, far_port] } else { [far_port, near_port] };
    let length = (8 + payload.len() as u16).to_be_bytes();
    let mut udp = [&ports.concat()[..], &length, &[0, 0], payload].concat();
    if checksum {
        let value = sum(&[&source, &destination, &[0, 17], &length, &udp]);
        udp[6..8].copy_from_slice(&(if value == 0 { 0xffff } else { value }).to_be_bytes());
    }
    let total = (20 + udp.len() as u16).to_be_bytes();
    let mut ip = [&[0x45, 0][..], &total, &[0, host, 0x40, 0, 64, 17, 0, 0], &source, &destination].concat();
    let value = sum(&[&ip]);
    ip[10..12].copy_from_slice(&value.to_be_bytes());
    let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, host, 8, 0];
    [&ethernet[..], &ip, &udp].concat()
}

/// What the ARQ receiver may meet: segments in and out of order, other kinds, short ones, padding, damage, what is not UDP.
fn frame(random: &mut Random, expected: &mut [u32], hosts: u64) -> Vec<u8> {
    let host = random.below(hosts) as usize;
    let kind = [1, 1, 1, 1, 2, 3, 0][random.below(7) as usize];
    let sequence = match random.below(8) {
        0 => random.below(1 << 32) as u32,
        1 => expected[host].wrapping_sub(1),
        2 => expected[host].wrapping_add(1),
        _ => expected[host],
    };
    let (short, damage) = (random.below(30) == 0, random.below(20));
    // What is damaged never arrives.
    if sequence == expected[host] && (kind == 1 || kind == 3) && !short && !(1..=3).contains(&damage) {
        expected[host] = expected[host].wrapping_add(1);
    }
    let data = [0, 1, 7, 8, 9, random.below(100), random.below(1400)][random.below(7) as usize];
    let told = if random.below(8) == 0 { random.below(65_536) } else { data } as u16;
    let mut payload = vec![kind, 0];
    payload.extend(told.to_be_bytes());
    payload.extend(sequence.to_be_bytes());
    payload.extend((0..data).map(|_| random.below(256) as u8));
    if short {
        payload.truncate(random.below(9) as usize);
    }
    let mut frame = datagram(host as u8, random.below(20) == 0, damage == 1 || random.below(10) != 0, &payload);
    match damage {
        0 => frame.extend((0..random.below(20)).map(|_| random.below(256) as u8)),
        1 => {
            let (place, bit) = (14 + random.below(frame.len() as u64 - 14) as usize, random.below(8));
            frame[place] ^= 1 << bit;
        }
        2 => frame.truncate(1 + random.below(frame.len() as u64 - 1) as usize),
        3 => frame[13] = 6,
        _ => {}
    }
    frame
}

/// The same frames through both.
fn compare(
    image: &VerifiedImage,
    frames: impl Iterator<Item = (u64, Vec<u8>)>,
    pauses: Option<u32>,
) -> Option<Vec<Response>> {
    let mut model = start(image, pauses)?;
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let mut reference = make("reference", image.clone(), ports, EngineOptions::default()).unwrap();
    let mut out = Outbox::new();
    let mut responses = Vec::new();
    for (number, (time, bytes)) in frames.enumerate() {
        out.clear();
        reference.frame(Time::from_nanoseconds(time as i64), Port(1), Frame::new(&bytes), &mut out);
        let mut wanted = Response::default();
        for output in out.items() {
            match output {
                Output::Send { bytes, .. } => wanted.sent.push(out.bytes(bytes).to_vec()),
                Output::Deliver { bytes, .. } => wanted.told.push(Message::Delivered(out.bytes(bytes).to_vec())),
                Output::Notify { notice, value, .. } => wanted.told.push(Message::Notice(*notice, *value)),
                _ => {}
            }
        }
        let response = model.frame(time, &bytes).unwrap();
        assert_eq!((&response.sent, &response.told), (&wanted.sent, &wanted.told), "frame {number}: {bytes:02x?}");
        responses.push(response);
    }
    Some(responses)
}

fn arq_frames(seed: u64, count: usize, hosts: u64, step: u64) -> impl Iterator<Item = (u64, Vec<u8>)> {
    println!("seed {seed}");
    let (mut random, mut expected, mut time) = (Random(seed), vec![1; hosts as usize], (1_u64 << 40) - 1_000);
    (0..count).map(move |_| {
        time += random.below(step);
        (time, frame(&mut random, &mut expected, hosts))
    })
}

#[test]
fn arq_receiver_does_the_same() {
    let image = image("arq-receiver.xl", None);
    for pauses in [None, Some(1), Some(2)] {
        let Some(responses) = compare(&image, arq_frames(17, 2_000, 5, 1_000), pauses) else { return };
        let count = |of: &dyn Fn(&Response) -> bool| responses.iter().filter(|response| of(response)).count();
        let seen = [
            count(&|response| response.dropped),
            count(&|response| !response.sent.is_empty()),
            count(&|response| matches!(response.told[..], [Message::Delivered(_)])),
            count(&|response| matches!(response.told[..], [Message::Notice(..)])),
        ];
        println!("of {} frames: dropped, answered, delivered, notices: {seen:?}", responses.len());
        assert!(seen.iter().all(|&count| count >= 50));
    }
}

/// RFC 768: a checksum that is computed as zero is sent as all ones. Of all ports of the other end some give that.
#[test]
fn checksums_of_zero_are_sent_as_ones() {
    let image = image("arq-receiver.xl", None);
    let segment = |port: u16| {
        let mut bytes = datagram(1, false, false, &[1, 0, 0, 0, 0, 0, 0, 1]);
        bytes[34..36].copy_from_slice(&port.to_be_bytes());
        bytes
    };
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let mut reference = make("reference", image.clone(), ports, EngineOptions::default()).unwrap();
    let mut out = Outbox::new();
    let mut answered_by_ones = |port: &u16| {
        out.clear();
        reference.frame(Time::ZERO, Port(1), Frame::new(&segment(*port)), &mut out);
        let sent = out.items().iter().find_map(|output| match output {
            Output::Send { bytes, .. } => Some(out.bytes(bytes)[40..42] == [0xff, 0xff]),
            _ => None,
        });
        sent.expect("an answer")
    };
    let found: Vec<u16> = (1..=u16::MAX).filter(&mut answered_by_ones).collect();
    assert!(!found.is_empty());
    compare(&image, found.into_iter().map(|port| (0, segment(port))), None);
}

#[test]
fn idle_flows_expire_and_full_tables_evict() {
    const PROGRAM: &str = r#"machine small;
import "arq.p4" { arq_t as arq after udp; }
const network = 1;
flow key five_tuple expires after 100us at most 3 flows;
register seen: u8 = 250;
template answer: udp, arq { arq.kind = 2; }
initial state counting {
    on packet when arq.kind == 1 { seen = seen + 1; send answer { arq.sequence = seen; } to network; }
}
"#;
    let image = image("program.xl", Some(PROGRAM));
    let Some(responses) = compare(&image, arq_frames(4, 3_000, 5, 20_000), None) else { return };
    assert!(responses.iter().filter(|response| !response.sent.is_empty()).count() > 500);
}

/// A program without tests behind assignments: those need internal events, which the RTL lacks.
fn program(random: &mut Random) -> String {
    let value = |random: &mut Random| -> String {
        match random.below(9) {
            place @ 0..=3 => format!("r{place}"),
            4 => "arq.length".into(),
            5 => "arq.kind".into(),
            6 => "packet.length".into(),
            7 => random.below(70).to_string(),
            _ => random.below(1 << 40).to_string(),
        }
    };
    let comparison = |random: &mut Random| {
        let by = ["==", "!=", "<", "<=", ">", ">="][random.below(6) as usize];
        let (left, right) = match random.below(4) {
            0 => ("sequence".into(), "arq.sequence".into()),
            _ => (format!("r{}", random.below(4)), value(random)),
        };
        format!("{left} {by} {right}")
    };
    let mut text = String::from(
        "machine random;\nimport \"arq.p4\" { arq_t as arq after udp; }\n\
         flow key five_tuple expires after 20us at most 4 flows;\n\
         template answer: udp, arq { arq.kind = 2; }\nregister sequence: seq32 = 7;\n",
    );
    for place in 0..4 {
        let kind = ["u8", "u16", "u32", "i64", "i64"][random.below(5) as usize];
        text += &format!("register r{place}: {kind} = {};\n", random.below(200));
    }
    let states = 1 + random.below(3);
    for state in 0..states {
        text += if state == 0 { "initial " } else { "" };
        text += &format!("state s{state} {{\n");
        for _ in 0..1 + random.below(4) {
            let both = ["and", "or"][random.below(2) as usize];
            text += &format!("on packet when {} {both} {} {{\n", comparison(random), comparison(random));
            for _ in 0..random.below(5) {
                let (left, right) = (value(random), value(random));
                let by = ["+", "-", "&", "|", "^", "<<", ">>"][random.below(7) as usize];
                text += &match random.below(5) {
                    0 => format!("r{} = min({left}, {right});\n", random.below(4)),
                    1 => "sequence = arq.sequence;\n".into(),
                    _ => format!("r{} = {left} {by} {right};\n", random.below(4)),
                };
            }
            let (first, second) = (random.below(4), random.below(4));
            text += &format!("send answer {{ arq.length = r{first}; arq.kind = r{second}; }} to 1;\n");
            text += &format!("deliver packet({}, {});\n", value(random), value(random));
            text += &format!("goto s{};\n}}\n", random.below(states));
        }
        text += "}\n";
    }
    text
}

#[test]
fn random_programs_do_the_same() {
    let (mut random, mut run, mut answers, mut lacking) = (Random(5), 0, 0, 0);
    for seed in 0..300 {
        let text = program(&mut random);
        let compiled = compile("program.xl", Dialect::Xl, &Files(Some(&text)));
        // Constants that are computed may not fit their register, which the compiler refuses.
        let Some(image) = compiled.image else {
            lacking += 1;
            continue;
        };
        let image = image.verify().unwrap();
        if let Err(error) = encode(&image) {
            println!("program {seed}: {error}");
            lacking += 1;
            continue;
        }
        println!("program {seed}:\n{text}");
        let Some(responses) = compare(&image, arq_frames(seed, 40, 5, 8_000), Some(seed as u32)) else { return };
        run += 1;
        answers += responses.iter().filter(|response| !response.sent.is_empty()).count();
    }
    println!("TOTAL: {run} programs run, {lacking} not, {answers} answers");
    assert!(run > 50 && answers > 500, "{run} programs, {answers} answers");
}

#[test]
fn latency_is_known() {
    let image = image("arq-receiver.xl", None);
    let segment =
        |sequence: u8| datagram(1, false, true, &[1, 0, 0, 10, 0, 0, 0, sequence, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let frames = [(1, segment(1)), (2, segment(1))];
    assert_eq!(frames[0].1.len(), 60);
    let Some(responses) = compare(&image, frames.into_iter(), None) else { return };
    let clocks: Vec<(u64, u64)> = responses
        .iter()
        .map(|response| {
            let Clocks { last_in, dispatch, send, first_out, .. } = response.clocks;
            (send - dispatch, first_out - last_in)
        })
        .collect();
    println!("dispatch to send, last beat in to first beat out: new segment, repeated segment: {clocks:?}");
    // A fixed program on a known flow takes a fixed time: docs/hardware.md says it.
    assert_eq!(clocks, [(36, 50), (28, 42)]);
}

#[test]
fn what_is_lacking_is_named() {
    for (name, wanted) in
        [("arq-sender.xl", "the RTL lacks"), ("syn-proxy.xl", "the image has 65536 flows, the RTL has room for 1024")]
    {
        let error = encode(&image(name, None)).unwrap_err().to_string();
        println!("{error}");
        assert!(error.contains(wanted), "{name}: {error}");
    }
}
