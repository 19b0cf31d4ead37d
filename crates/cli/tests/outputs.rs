//! What every command does where it writes: to files of all kinds, and to a standard output that nobody reads or that is
//! full.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

mod support;

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::place::{self, EXAMPLES, WEFT, weft};

const GOOD: &str = "machine good; initial state only { on packet { notify seen; } }\n";

/// A fresh folder with a program.
fn folder(name: &str) -> PathBuf {
    let folder = place::folder(&format!("outputs-{name}"));
    fs::write(folder.join("good.xl"), GOOD).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    place::names(folder).into_iter().collect()
}

/// The program's image, written to standard output.
fn image(folder: &Path) -> Vec<u8> {
    let output = weft(folder, &["compile", "good.xl", "--output", "-"]);
    assert!(output.status.success() && output.stdout.starts_with(b"{"), "{output:?}");
    output.stdout
}

fn compile(folder: &Path, to: &str) -> Output {
    weft(folder, &["compile", "good.xl", "--output", to])
}

#[test]
fn links_are_followed_and_stay() {
    let folder = folder("links");
    let image = image(&folder);
    fs::create_dir(folder.join("there")).unwrap();
    fs::write(folder.join("there/old.json"), "old").unwrap();
    symlink("there/old.json", folder.join("old")).unwrap();
    symlink("there/new.json", folder.join("dangling")).unwrap();
    symlink("dangling", folder.join("chain")).unwrap();
    symlink("loop", folder.join("loop")).unwrap();
    for (link, target) in [("old", "there/old.json"), ("dangling", "there/new.json"), ("chain", "there/new.json")] {
        let _ = fs::remove_file(folder.join("there/new.json"));
        let output = compile(&folder, link);
        assert!(output.status.success(), "{link}: {output:?}");
        assert!(fs::symlink_metadata(folder.join(link)).unwrap().is_symlink(), "{link}");
        let written = fs::symlink_metadata(folder.join(target)).unwrap();
        assert!(written.is_file() && fs::read(folder.join(target)).unwrap() == image, "{link}");
    }
    let output = compile(&folder, "loop");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write loop"), "{output:?}");
    assert_eq!(names(&folder.join("there")), ["new.json", "old.json"]);
}

#[test]
fn a_replaced_file_keeps_its_mode_and_a_read_only_one_stays() {
    let folder = folder("mode");
    let (file, image) = (folder.join("out.json"), image(&folder));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&file).unwrap();
    assert!(compile(&folder, "out.json").status.success());
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert!(fs::read(&file).unwrap() == image && after.ino() != before.ino(), "it is another file of that name");

    let output = compile(&folder, "mode-of-a-new-file.json");
    assert!(output.status.success());
    let mode = fs::metadata(folder.join("mode-of-a-new-file.json")).unwrap().mode();
    assert_eq!(mode & 0o600, 0o600);
    assert_eq!(names(&folder), ["good.xl", "mode-of-a-new-file.json", "out.json"]);
}

#[test]
fn pipes_and_standard_output_are_written_through() {
    let folder = folder("through");
    let image = image(&folder);
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let output = compile(&folder, name);
        assert!(output.status.success() && output.stdout == image, "{name}: {output:?}");
        // A regular file as standard output: what stands there already stays in front.
        let file = folder.join("shell");
        let shell = format!("(echo before; {WEFT} compile good.xl --output {name}) > shell");
        assert!(Command::new("sh").args(["-c", &shell]).current_dir(&folder).status().unwrap().success());
        assert!(fs::read(&file).unwrap() == [b"before\n", &image[..]].concat(), "{name}");
    }
    let fifo = folder.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut bytes = Vec::new();
            File::open(fifo).unwrap().read_to_end(&mut bytes).map(|_| bytes).unwrap()
        }
    });
    assert!(compile(&folder, "fifo").status.success());
    assert!(reader.join().unwrap() == image);
    assert!(!fs::symlink_metadata(&fifo).unwrap().is_file());
}

#[test]
fn what_cannot_be_written_is_named_once() {
    let folder = folder("failures");
    fs::create_dir(folder.join("folder")).unwrap();
    fs::create_dir(folder.join("out")).unwrap();
    symlink("/dev/full", folder.join("full")).unwrap();
    let capture = format!("1={EXAMPLES}/captures/syn-proxy.pcapng,interface=port1");
    let replay = |option: &'static str| vec!["replay", "good.xl", "--port", &*capture, option, "full"];
    let cases = [
        (vec!["compile", "good.xl", "--output", "folder"], "folder", "it is a folder; name a file"),
        (vec!["compile", "good.xl", "--output", "none/x"], "none/x", "No such file"),
        (vec!["compile", "good.xl", "--output", "full"], "full", "No space left"),
        (vec!["explain", "good.xl", "--out", "full"], "full", "No space left"),
        (vec!["graph", "good.xl", "--out", "full"], "full", "No space left"),
        (replay("--out"), "full", "No space left"),
        (replay("--trace"), "full", "No space left"),
    ];
    for (words, name, reason) in cases {
        let output = weft(&folder, &words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        let line = said.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(line.contains(&format!("cannot write {name}: ")) && line.contains(reason), "{words:?}: {said}");
        assert_eq!(said.matches("cannot write").count(), 1, "{words:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert!(fs::symlink_metadata(folder.join("full")).unwrap().is_symlink());
    assert_eq!(names(&folder), ["folder", "full", "good.xl", "out"]);
}

/// The commands under `words`, each with all words that name it, as `weft help` lists them.
fn commands(words: &[&str]) -> Vec<String> {
    let help = Command::new(WEFT).args(words).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let below: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| !word.is_empty() && *word != "help")
        .collect();
    match below.is_empty() {
        true => vec![words.join(" ")],
        false => below.iter().flat_map(|word| commands(&[words, &[word]].concat())).collect(),
    }
}

/// Arguments for each command with which it gets as far as it can in a test, `$` for the examples.
const CALLS: &[(&str, &str)] = &[
    ("bench pacing", "--seconds 0 --flows 0 --priority 0 --out out"),
    ("check", "good.xl"),
    ("cat", "good.xl --port 1=none-such 10.0.0.1-10.0.0.2:80"),
    ("chain agent", "none-such.toml --port 1=none-such --port 2=none-such"),
    ("chain change", "1 --right 2 --control none-such"),
    ("compile", "good.xl --output -"),
    ("explain", "good.xl"),
    ("graph", "good.xl"),
    ("listen", "good.xl --port 1=none-such 10.0.0.1:80"),
    ("pace times", "slow_start --rtt 100ms --count 100000"),
    ("pace compile", "slow_start --rtt 100ms --check 1000"),
    ("pace plot", "slow_start --rtt 100ms --check 1000 --output -.svg"),
    ("proxy", "good.xl --port 1=none-such --listen 10.0.0.1:80 --kernel-connect 127.0.0.1:80"),
    ("replay", "good.xl --port 1=none --out -"),
    ("report", "--capture $/captures/syn-proxy.pcapng --out -"),
    ("run", "good.xl --port 1=none-such"),
    ("sim", "$/networks/relay.toml --duration 10ms --out sim"),
    ("study calendar", "--loads 0.5 --repeats 1 --substitutions 10 --out study"),
    ("study subscriptions", "--edges none-such --out study"),
    ("study applications", "--packets 100 --out study"),
    (
        "study fct",
        "--rates 5Mbit/s --rtts 10ms --queues 5 --lengths 2 --initial-windows 10 --pairs newreno+rack --seeds 1 --out fct",
    ),
    ("subs check", "$/subscriptions/itch.rules --format $/subscriptions/itch.p4"),
    ("subs compile", "$/subscriptions/itch.rules --format $/subscriptions/itch.p4"),
    ("subs explain", "$/subscriptions/itch.rules --format $/subscriptions/itch.p4 add_order.stock=AAPL"),
    ("subs graph", "$/subscriptions/itch.rules --format $/subscriptions/itch.p4"),
    (
        "subs match",
        "$/subscriptions/market-data.pcapng --rules $/subscriptions/itch.rules --format $/subscriptions/itch.p4 --out match",
    ),
    ("subs run", "--rules $/subscriptions/itch.rules --format $/subscriptions/itch.p4 --port 1=none-such"),
    ("subs replay", "none-such --rules $/subscriptions/itch.rules --format $/subscriptions/itch.p4"),
    ("subs snapshot", "--control none-such"),
    ("subs kafka", "--local 192.0.2.1"),
    ("subs route", "--fat-tree 4 --format $/subscriptions/itch.p4 --subscriptions subscriptions --out route"),
    ("subs controller", "--fat-tree 4 --format $/subscriptions/itch.p4 --store store --listen unix:none-such/socket"),
    ("subs subscribe", "host1 true --controller unix:none-such"),
    ("subs unsubscribe", "host1 true --controller unix:none-such"),
    ("subs list", "--controller unix:none-such"),
    ("subs topology", "--controller unix:none-such"),
    ("subs watch", "--controller unix:none-such"),
    ("up", "none-such.toml"),
    ("down", "none-such.toml"),
    ("exec", "--network none-such node -- true"),
    ("status", ""),
    ("compare", "first first --out -"),
    ("flows list", "--control none-such"),
    ("flows show", "1 --control none-such"),
    ("flows set", "1 a=1 --control none-such"),
    ("flows parameters", "a=1 --control none-such"),
    ("flows delete", "1 --control none-such"),
    ("flows snapshot", "--all --control none-such"),
    ("flows adopt", "good.xl --control none-such"),
    ("flows counters", "--control none-such"),
    ("debug", "--control none-such"),
];

#[test]
fn every_command_stands_a_standard_output_that_is_closed_or_full() {
    let folder = folder("streams");
    fs::write(folder.join("subscriptions"), "host1: add_order.stock == AAPL\n").unwrap();
    let first = format!("sim {EXAMPLES}/networks/relay.toml --duration 10ms --out first");
    assert!(weft(&folder, &first.split(' ').collect::<Vec<_>>()).status.success());
    let known: BTreeSet<String> = CALLS.iter().map(|(command, _)| (*command).to_owned()).collect();
    assert_eq!(commands(&[]).into_iter().collect::<BTreeSet<_>>(), known, "every command has its line in CALLS");
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    // The reading end is closed at once.
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    let mut complaints = 0;
    for (command, arguments) in CALLS {
        let arguments = arguments.replace('$', EXAMPLES);
        let words: Vec<&str> = command.split(' ').chain(arguments.split(' ').filter(|word| !word.is_empty())).collect();
        let help = [&command.split(' ').collect::<Vec<_>>()[..], &["--help"]].concat();
        for (words, streams) in [(words, 4), (help, 2)] {
            let run = |output: Stdio, errors: Stdio| {
                let mut weft = Command::new(WEFT);
                weft.args(&words).current_dir(&folder).stdin(Stdio::null()).stdout(output).stderr(errors);
                weft.output().unwrap()
            };
            let plain = run(Stdio::piped(), Stdio::piped());
            assert!(matches!(plain.status.code(), Some(0..=2)), "{words:?}: {plain:?}");
            let cases = [
                (closed(), Stdio::piped(), false),
                (full(), Stdio::piped(), true),
                (full(), full(), true),
                (closed(), closed(), false),
            ];
            for (output, errors, is_full) in cases.into_iter().take(streams) {
                let found = run(output, errors);
                let said = String::from_utf8_lossy(&found.stderr);
                assert!(!said.contains("panicked") && !said.contains("Broken pipe"), "{words:?}: {said}");
                let lines = said.matches("standard output").count();
                assert!(lines <= usize::from(is_full), "{words:?}: {said}");
                complaints += lines;
                let wanted = match plain.status.success() && is_full && !plain.stdout.is_empty() {
                    true => Some(1),
                    false => plain.status.code(),
                };
                assert_eq!(found.status.code(), wanted, "{words:?}: {said}");
            }
        }
    }
    // All helps, and what gets as far as to say something.
    assert!(complaints > CALLS.len() + 15, "{complaints}");
}
