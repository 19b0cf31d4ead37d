//! What is known on disk of a network that is up: enough to use it, and to remove it after a crash at any point.
//!
//! Each network has a folder `/run/weft/networks/NAME` with `state.json`. It is written, atomically, before the first
//! thing it names is made. So whatever exists is in it; what it names and does not exist is no harm.

use crate::error::LabError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use weftwire_linux::local::{ROOT, own_folder};
use weftwire_linux::system::check;

/// Where the folders of all networks are.
pub const NETWORKS: &str = "/run/weft/networks";

/// How long to wait for another `weft up` or `weft down` of the same network.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network as it is (or was to be) made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
    /// How far it is.
    pub phase: Phase,
    /// The process that holds the relay and all else that runs.
    pub supervisor: Process,
    /// It runs in the foreground and ends by itself.
    pub foreground: bool,
    /// The namespace of the relay, which holds the other end of every link.
    pub hub: String,
    /// The nodes in the order of the file.
    pub nodes: Vec<NodeState>,
    /// The links in the order of the file.
    pub links: Vec<LinkState>,
}

/// A link as it is made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkState {
    /// Its name.
    pub name: String,
    /// `NODE:PORT` of both ends.
    pub ends: [String; 2],
    /// Bits per second of both directions at the start, if limited and constant.
    pub rates: [Option<u64>; 2],
}

/// How far a network is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is being made.
    Building,
    /// Everything is there.
    Ready,
}

/// A node as it is made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// `host`, `router`, `switch`, `sink`, `echo` or `function`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its address, if it has one.
    pub ipv4: Option<Ipv4Addr>,
    /// Its address, if it has one.
    pub ipv6: Option<Ipv6Addr>,
    /// Its interfaces, by port from 1, each with the name of the link behind it.
    pub interfaces: Vec<(String, String)>,
}

/// A process, told from a later one of the same number by the time it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it started, in the kernel's ticks since boot.
    pub start: u64,
}

impl Process {
    /// This process.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn own() -> Result<Process, LabError> {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        let start = start_of(pid).ok_or(LabError::NoProc)?;
        Ok(Process { pid, start })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    /// Asks it to end, waits, and ends it for good.
    pub fn end(self, patience: Duration) {
        for (signal, patience) in [(libc::SIGTERM, patience), (libc::SIGKILL, Duration::from_secs(10))] {
            if !self.is_alive() {
                return;
            }
            // SAFETY: kill takes numbers; the process of this number is still the one that was noted.
            unsafe { libc::kill(self.pid, signal) };
            let deadline = Instant::now() + patience;
            while self.is_alive() && Instant::now() < deadline {
                sleep(Duration::from_millis(5));
            }
        }
    }
}

/// When a process started: field 22 of its `stat`, counted behind the name in brackets. Zombies are no processes.
fn start_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The folder of a network.
pub fn folder(name: &str) -> PathBuf {
    Path::new(NETWORKS).join(name)
}

/// The right to make or remove a network of a name: a lock on its folder. Another process waits for it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is not there, and locks it.
    ///
    /// # Errors
    /// No permission, or another process has held it for a minute.
    pub fn lock(name: &str) -> Result<Folder, LabError> {
        let path = folder(name);
        let deadline = Instant::now() + PATIENCE;
        loop {
            make_folder(&path)?;
            // Whoever removed the folder meanwhile leaves a lock on a folder without a name: then once more.
            match Folder::try_lock(&path) {
                Ok(Some(folder)) => return Ok(folder),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(LabError::system(format!("lock {}", path.display()), error)),
            }
            if Instant::now() > deadline {
                return Err(LabError::AtWork(name.to_owned()));
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Locks the folder if nobody else has.
    ///
    /// # Errors
    /// The folder is not there, or can't be opened.
    pub fn try_lock(path: &Path) -> io::Result<Option<Folder>> {
        let file = File::open(path)?;
        // SAFETY: flock takes an open descriptor and a number.
        if let Err(error) = check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let same = fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|then| then.ino() == now.ino()));
        Ok(same.then(|| Folder { path: path.to_owned(), _lock: file }))
    }

    /// A file within.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes `state.json`.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self, state: &State) -> Result<(), LabError> {
        write_json(&self.file("state.json"), state)
    }

    /// Removes the folder with all that is in it, and that of all networks if no other is there.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn remove(self) -> Result<(), LabError> {
        fs::remove_dir_all(&self.path)
            .map_err(|error| LabError::system(format!("remove {}", self.path.display()), error))?;
        // Other networks may be there.
        let _ = fs::remove_dir(NETWORKS);
        Ok(())
    }
}

/// Others may pass the folder, to read files whose names they know, and not open it: who can open it could lock it.
fn make_folder(path: &Path) -> Result<(), LabError> {
    own_folder(Path::new(ROOT))?;
    own_folder(Path::new(NETWORKS))?;
    match DirBuilder::new().mode(0o711).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(LabError::privileged(format!("make the folder {}", path.display()), "root", error))
        }
        _ => Ok(()),
    }
}

/// Writes a document so that readers see the old one or the new one, never half of one.
///
/// # Errors
/// The file system refuses.
pub fn write_json(path: &Path, document: &impl Serialize) -> Result<(), LabError> {
    let failed = |error| LabError::system(format!("write {}", path.display()), error);
    let temporary = path.with_extension("partial");
    let mut bytes = serde_json::to_vec_pretty(document).map_err(|error| failed(error.into()))?;
    bytes.push(b'\n');
    let mut file = File::create(&temporary).map_err(failed)?;
    file.write_all(&bytes).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// Reads a document.
///
/// # Errors
/// It is not there, or can't be understood.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// The state of the network `name`; `None` if there is none. A folder without a readable state is left-over, too: nothing
/// had been made when its maker died.
pub fn read(name: &str) -> Option<State> {
    read_json(&folder(name).join("state.json")).ok()
}

/// The names of all networks that have a folder, sorted.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(NETWORKS).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends_and_not_mistaken_for_another() {
        let own = Process::own().unwrap();
        assert!(own.is_alive());
        assert!(!Process { start: own.start + 1, ..own }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        let process = Process { pid, start: start_of(pid).unwrap() };
        process.end(Duration::from_secs(5));
        assert!(!process.is_alive(), "also while nobody has waited for it");
        child.wait().unwrap();
    }

    #[test]
    fn a_folder_has_one_lock_and_none_when_it_is_gone() {
        let path = std::env::temp_dir().join(format!("weft-state-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let first = Folder::try_lock(&path).unwrap().expect("nobody else has it");
        assert!(Folder::try_lock(&path).unwrap().is_none());
        fs::remove_dir_all(&path).unwrap();
        fs::create_dir_all(&path).unwrap();
        let second = Folder::try_lock(&path).unwrap().expect("a new folder");
        drop(first);
        fs::remove_dir_all(&second.path).unwrap();
        assert!(Folder::try_lock(&path).is_err());
    }
}
