//! Other users of the machine against runs of root: nobody takes their names, poses as them, holds them up, or reaches one
//! run from another.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

use anyhow::{Context as _, Result, ensure};
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weftwire_testbed::{Namespace, Output, Running, as_user, skip_unless_root, wait_for};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const FUNCTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/syn-proxy.xl");
const FORMAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/subscriptions/itch.p4");
const LIMIT: Duration = Duration::from_secs(20);
/// Somebody, who has no name.
const ATTACKER: u32 = 54_321;

/// A folder to which everybody may write, as `/tmp` is.
fn open_folder(name: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder)?;
    fs::set_permissions(&folder, Permissions::from_mode(0o1777))?;
    Ok(folder)
}

fn weft(words: &[&str]) -> Result<Output> {
    let mut command = Command::new(WEFT);
    command.args(words);
    Running::start(command)?.wait(LIMIT)
}

/// A run of its own name in a namespace of its own.
struct Run {
    weft: Running,
    name: String,
    _space: Namespace,
}

impl Run {
    fn start() -> Result<Run> {
        let space = Namespace::new()?;
        let name = space.name().to_owned();
        let words = [WEFT, "run", FUNCTION, "--port", "1=tun:one", "--port", "2=tun:two", "--name", &name];
        let weft = space.spawn(&words)?;
        let run = Run { weft, name, _space: space };
        let socket = run.socket();
        wait_for("the run", LIMIT, || weft_answers(&socket))?;
        Ok(run)
    }

    fn folder(&self) -> PathBuf {
        Path::new("/run/weft/runs").join(&self.name)
    }

    fn socket(&self) -> PathBuf {
        self.folder().join("control.sock")
    }

    fn uid(&self) -> Result<u32> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.weft.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).context("a line of users")?;
        let all: Vec<u32> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        ensure!(all.windows(2).all(|pair| pair[0] == pair[1]), "{line}");
        Ok(all[0])
    }
}

fn weft_answers(socket: &Path) -> bool {
    weft(&["flows", "counters", "--control", &socket.to_string_lossy()]).is_ok_and(|said| said.status.success())
}

#[test]
fn each_run_has_a_user_and_a_folder_that_others_cannot_touch() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["setpriv"]) else { return Ok(()) };
    let (first, second) = (Run::start()?, Run::start()?);
    for folder in ["/run/weft", "/run/weft/runs"] {
        let data = fs::metadata(folder)?;
        ensure!((data.uid(), data.mode() & 0o7777) == (0, 0o755), "{folder}: {:o}", data.mode());
    }
    let (one, two) = (first.uid()?, second.uid()?);
    ensure!(one != two && [one, two].iter().all(|uid| (60_578..=61_183).contains(uid)), "{one}, {two}");
    ensure!(fs::metadata(first.folder())?.uid() == one && fs::metadata(first.socket())?.mode() & 0o777 == 0o600);

    // Neither somebody nor the user of the other run gets anywhere.
    for uid in [ATTACKER, two] {
        let refused = as_user(uid, || {
            [
                UnixStream::connect(first.socket()).is_err(),
                UnixListener::bind(first.folder().join("mine.sock")).is_err(),
                UnixListener::bind("/run/weft/mine.sock").is_err(),
                fs::create_dir("/run/weft/runs/mine").is_err(),
                fs::remove_file(first.socket()).is_err(),
                fs::rename(first.folder(), "/run/weft/runs/mine").is_err(),
                fs::File::open(format!("/run/weft/runs/{}.lock", first.name)).is_err(),
                fs::File::open(format!("/run/weft/users/{one}")).is_err(),
                // What a debugger needs.
                fs::File::open(format!("/proc/{}/mem", first.weft.pid())).is_err(),
            ]
        })?;
        ensure!(refused == [true; 9], "user {uid}: {refused:?}");
        let user = uid.to_string();
        let mut kill = Command::new("setpriv");
        kill.args(["--reuid", &user, "--regid", &user, "--clear-groups", "sh", "-c"]);
        kill.arg(format!("kill -TERM {}", first.weft.pid()));
        let said = Running::start(kill)?.wait(LIMIT)?;
        ensure!(!said.status.success() && said.stderr.contains("ermitted"), "{}", said.stderr);
    }

    // The name is taken while the run lives, and free when it was killed; what it left goes.
    let again = [WEFT, "run", FUNCTION, "--port", "1=tun:three", "--port", "2=tun:four", "--name", &first.name];
    let said = second._space.spawn(&again)?.wait(LIMIT)?;
    ensure!(!said.status.success() && said.stderr.contains("is active already"), "{}", said.stderr);
    let folder = first.folder();
    first.weft.kill();
    ensure!(folder.join("control.sock").exists());
    let mut third = Run::start()?;
    ensure!(!folder.exists() && third.weft.is_running());
    let socket = third.socket();
    let said = third.weft.stop()?;
    ensure!(said.status.success(), "{}", said.stderr);
    ensure!(!socket.exists(), "a run removes its socket");
    Ok(())
}

#[test]
fn nobody_poses_as_a_run_or_a_controller() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = open_folder("pose")?;
    let path = folder.join("posed.sock");
    let text = path.to_string_lossy().into_owned();
    let _listener = as_user(ATTACKER, || UnixListener::bind(&path))??;
    fs::set_permissions(&path, Permissions::from_mode(0o666))?;
    for words in [
        vec!["flows", "--control", &text],
        vec!["debug", "--control", &text],
        vec!["subs", "list", "--controller", &text],
        vec!["subs", "topology", "--controller", &text],
    ] {
        let said = weft(&words)?;
        ensure!(
            !said.status.success() && said.stderr.contains("user 54321 listens there"),
            "{words:?}: {}",
            said.stderr
        );
    }
    // A switch neither: it forwards nothing by a stranger's rules.
    let space = Namespace::new()?;
    let words = ["subs", "run", "--switch", "s", "--controller", &text, "--format", FORMAT, "--port", "1=tun:one"];
    let said = space.spawn(&[&[WEFT][..], &words, &["--for", "300ms"]].concat())?.wait(LIMIT)?;
    ensure!(said.stderr.contains("user 54321 listens there"), "{}", said.stderr);
    fs::remove_dir_all(&folder)?;
    Ok(())
}

#[test]
fn what_stands_at_the_sockets_path_holds_no_run_up() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["mkfifo"]) else { return Ok(()) };
    let folder = open_folder("hung")?;
    let (pipe, hung) = (folder.join("pipe"), folder.join("hung.sock"));
    ensure!(Command::new("mkfifo").arg(&pipe).status()?.success());
    // It takes nobody, and has no place for more that wait.
    let _listener = as_user(ATTACKER, || UnixListener::bind(&hung))??;
    // As many wait as have a place, where the queue is short.
    let _waiting: Vec<UnixStream> = (0..129).map(|_| UnixStream::connect(&hung)).collect::<Result<_, _>>()?;
    let space = Namespace::new()?;
    for (path, wanted) in [(&pipe, "is no socket"), (&hung, "is active already")] {
        let control = path.to_string_lossy();
        let said = space.spawn(&[WEFT, "run", FUNCTION, "--port", "1=tun:one", "--control", &control])?.wait(LIMIT)?;
        ensure!(!said.status.success() && said.stderr.contains(wanted), "{control}: {}", said.stderr);
        ensure!(path.exists(), "what is there stays");
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// A run's answer may be what somebody else's program put into it.
#[test]
fn nothing_that_a_terminal_obeys_is_printed() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = open_folder("escapes")?;
    let path = folder.join("control.sock");
    let listener = UnixListener::bind(&path)?;
    let answers = [
        r#"{"page":{"flows":[{"flow":1,"key":"\u001b[2Jkey","state":"\u009b31m","created":0,"last_active":0,"events":0}],"next":null}}"#,
        r#"{"error":"\u001b]0;title\u0007"}"#,
        r#"{"counters":{"frames_in":0,"frames_out":0,"frames_passed":0,"flows_created":0,"flows_live":0,"flows_peak":0,"flows_expired":0,"flows_evicted":0,"rows":[["\u001b[1m",7]],"drops":{},"ports":[]}}"#,
        r#"{"done":{}}
{"trace":{"time":0,"flow":1,"kind":"snapshot","state":"\u001bc","event":"e","row":null,"line":null,"next":"n","actions":[],"registers":[]}}"#,
    ];
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        for answer in answers {
            let mut stream = listener.accept()?.0;
            BufReader::new(stream.try_clone()?).read_line(&mut String::new())?;
            writeln!(stream, "{answer}")?;
        }
        Ok(())
    });
    let control = path.to_string_lossy();
    for words in [vec!["flows"], vec!["flows", "show", "1"], vec!["flows", "counters"], vec!["debug"]] {
        let said = weft(&[&words[..], &["--control", &control]].concat())?;
        let all = said.stdout + &said.stderr;
        ensure!(all.contains(r"\u{1b}"), "{words:?}: {all:?}");
        ensure!(!all.chars().any(|letter| letter.is_control() && letter != '\n'), "{words:?}: {all:?}");
    }
    server.join().expect("the server reports what failed")?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// A switch has no privileges any more when its controller starts again, with a socket that only root may open.
#[test]
fn a_switch_without_privileges_finds_its_controller_again() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = open_folder("again")?;
    fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (network, store, socket, log) = (path("network.toml"), path("store"), path("grpc.sock"), path("log"));
    fs::write(
        &network,
        "duration = \"1s\"\nnodes = { a = {}, b = {}, s = { kind = \"router\" } }\n\
         links = [{ between = [\"a\", \"s\"], rate = \"1Gbit/s\" }, { between = [\"b\", \"s\"], rate = \"1Gbit/s\" }]\n",
    )?;
    let space = Namespace::new()?;
    let controller = || -> Result<Running> {
        let words = ["subs", "controller", &network, "--format", FORMAT, "--store", &store, "--listen", &socket];
        let running = space.spawn(&[&[WEFT][..], &words].concat())?;
        wait_for("the controller", LIMIT, || ask(&["topology"], &socket).is_ok())?;
        Ok(running)
    };
    let first = controller()?;
    let words = ["subs", "run", "--switch", "s", "--controller", &socket, "--format", FORMAT, "--control", &log];
    let switch = space.spawn(&[&[WEFT][..], &words, &["--port", "1=tun:one", "--port", "2=tun:two"]].concat())?;
    let follows = || ask(&["topology"], &socket).is_ok_and(|said| said.contains("up to date"));
    wait_for("the switch", LIMIT, follows)?;
    // The controller has sent everything, but only a switch that has taken it runs.
    wait_for("the switch's run", LIMIT, || Path::new(&log).exists())?;
    first.kill();
    let second = controller()?;
    wait_for("the switch, again", LIMIT, follows)?;
    ask(&["subscribe", "a", "add_order.side == B", "--wait"], &socket)?;
    ensure!(follows(), "a change comes too");
    let said = switch.interrupt()?;
    ensure!(said.status.success() && said.stderr.contains("goes on with 0 rules"), "{}", said.stderr);
    second.interrupt()?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Every thread of the bridge, as each has privileges of its own.
#[test]
fn the_bridge_to_kafka_gives_its_privileges_up() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let space = Namespace::new()?;
    space.exec("ip link set lo up")?;
    let bridge = space.spawn(&[WEFT, "subs", "kafka", "--local", "127.0.0.1", "--listen", "127.0.0.1:1000"])?;
    wait_for("the bridge", LIMIT, || space.connect(([127, 0, 0, 1], 1000).into(), LIMIT).is_ok_and(|to| to.is_ok()))?;
    // It listens before there are threads.
    let tasks = format!("/proc/{}/task", bridge.pid());
    wait_for("its threads", LIMIT, || fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() >= 3))?;
    let mut threads = 0;
    for task in fs::read_dir(&tasks)? {
        // A thread for a client that has gone may end meanwhile.
        let Ok(status) = fs::read_to_string(task?.path().join("status")) else { continue };
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let uid: u32 = field("Uid:").and_then(|ids| ids.split_whitespace().next()?.parse().ok()).context("a user")?;
        ensure!((60_578..=61_183).contains(&uid), "{status}");
        for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
            ensure!(field(set) == Some("0000000000000000"), "{set} {status}");
        }
        ensure!(field("NoNewPrivs:") == Some("1"), "{status}");
        threads += 1;
    }
    ensure!(threads >= 3, "{threads} threads");
    let said = bridge.interrupt()?;
    ensure!(said.status.success(), "{}", said.stderr);
    Ok(())
}

fn ask(words: &[&str], socket: &str) -> Result<String> {
    let said = weft(&[&["subs"], words, &["--controller", socket]].concat())?;
    ensure!(said.status.success(), "{}", said.stderr);
    Ok(said.stdout)
}
