//! RoCEv2 (`examples/transports/roce`) as others see it: tshark reads every packet of a run, and bytes go between two machines.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests start programs")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use support::route::{Route, Transfer};
use weftwire_testbed::{skip_unless_installed, skip_unless_root};

/// Two streams to one receiver over a port that marks, and loses now and then: one of each version of IP.
const NETWORK: &str = r#"
duration = "1s"
record = ["receiver"]

[nodes.switch]
kind = "switch"
[nodes.one]
kind = "function"
image = "ROCE/requester.xl"
parameters = { timeout = "1ms" }
[nodes.other]
kind = "function"
image = "ROCE/requester.xl"
parameters = { timeout = "1ms" }
[nodes.receiver]
kind = "function"
image = "ROCE/responder.xl"

[[links]]
between = ["switch", "receiver"]
rate = "1Gbit/s"
delay = "2us"
loss = 0.01
queue = { limit = "300kB", discipline = "step", threshold = "20kB" }
[[links]]
between = ["one", "switch"]
rate = "10Gbit/s"
queue = "4MB"
[[links]]
between = ["other", "switch"]
rate = "10Gbit/s"
queue = "4MB"

[[traffic]]
kind = "bulk"
from = "one"
to = "receiver"
transport = "udp"
port = 4791
bytes = "400001B"
[[traffic]]
kind = "bulk"
from = "other"
to = "receiver"
transport = "udp"
family = 6
port = 4791
bytes = "200002B"
"#;

/// What tshark takes of each packet; of these the first five are in every one.
const FIELDS: [&str; 12] = [
    "udp.dstport",
    "infiniband.bth.opcode",
    "infiniband.bth.p_key",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "infiniband.invariant.crc",
    "infiniband.bth.padcnt",
    "infiniband.aeth.syndrome.opcode",
    "_ws.malformed",
    "_ws.expert.severity",
    "ip.version",
    "ipv6.version",
];
/// An opcode that tshark names not: a notification of congestion.
const CONGESTION: &str = "129";
/// `PI_ERROR` of Wireshark's expert information.
const ERROR: u32 = 0x0080_0000;

#[test]
fn tshark_reads_every_packet() -> Result<()> {
    let Some(_turn) = skip_unless_installed(&["tshark"]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("roce");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/roce");
    let network = folder.join("roce.toml");
    std::fs::write(&network, NETWORK.replace("ROCE", programs.to_str().context("not UTF-8")?))?;
    let results = folder.join("results");
    let output =
        Command::new(env!("CARGO_BIN_EXE_weft")).arg("sim").arg(&network).arg("--out").arg(&results).output()?;
    ensure!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let flows = std::fs::read_to_string(results.join("flows.csv"))?;
    ensure!(flows.matches("complete").count() == 2, "{flows}");

    let capture = find(&results, "pcapng")?;
    let crossings = support::crossings(&capture)?;
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&capture).args(["-T", "fields", "-E", "occurrence=a"]);
    FIELDS.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output()?;
    ensure!(output.status.success(), "{}", text(&output.stderr));
    let (mut opcodes, mut syndromes) = (BTreeMap::new(), BTreeMap::new());
    let lines = text(&output.stdout);
    ensure!(lines.lines().count() == crossings.len(), "{} of {} packets", lines.lines().count(), crossings.len());
    for (line, crossing) in lines.lines().zip(&crossings) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [port, opcode, partition, pair, psn, crc, _, syndrome, malformed, severity, ..] = fields[..] else {
            anyhow::bail!("{line}")
        };
        ensure!((port, partition) == ("4791", "65535") && !pair.is_empty() && !psn.is_empty(), "{line}");
        ensure!(malformed.is_empty(), "malformed: {line}");
        let severities = severity.split(',').filter_map(|it| it.parse::<u32>().ok());
        ensure!(severities.max() < Some(ERROR), "an error: {line}");
        let last: [u8; 4] = crossing.bytes[crossing.bytes.len() - 4..].try_into()?;
        let padded = crossing.bytes.len() == 60;
        let told = crc.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        ensure!(opcode == CONGESTION || padded || told == Some(u32::from_be_bytes(last)), "{line}: {last:?}");
        *opcodes.entry(opcode.to_owned()).or_insert(0) += 1;
        *syndromes.entry(syndrome.to_owned()).or_insert(0) += 1;
    }
    println!("{opcodes:?} {syndromes:?}");
    let all = ["0", "1", "2", "5", "17", CONGESTION].iter().all(|opcode| opcodes.contains_key(*opcode));
    ensure!(all && syndromes.contains_key("0") && syndromes.contains_key("3"), "{opcodes:?} {syndromes:?}");
    Ok(())
}

/// The one file with this ending in a folder and those in it.
fn find(folder: &Path, ending: &str) -> Result<std::path::PathBuf> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Ok(found) = find(&path, ending) {
                return Ok(found);
            }
        } else if path.extension().is_some_and(|it| it == ending) {
            return Ok(path);
        }
    }
    anyhow::bail!("there is no .{ending} in {}", folder.display())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn a_megabyte_goes_between_two_machines() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft"]) else { return Ok(()) };
    let slow = ["--parameter", "dcqcn.line=50Mbit/s", "--parameter", "dcqcn.least_rate=1Mbit/s"];
    Route::build()?.brings(&Transfer {
        ports: [40_000, 4_791],
        arguments: &slow,
        ..Transfer::new("transports/roce/requester.xl", "transports/roce/responder.xl", 1_000_000)
    })
}
