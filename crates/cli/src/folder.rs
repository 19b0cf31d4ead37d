//! Folders of results, which appear as a whole.

use crate::output::{self, PendingFile};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use weftwire_catalog::file::Kind;
use weftwire_linux::files::{exchange, read_regular};

/// The list of a folder's files that a command wrote, so that the next one knows which it may remove.
const LIST: &str = ".weft-files";
/// Most names that are tried for a folder that is not finished.
const MOST_NAMES: usize = 1_000;

/// A folder that a command fills beside the one whose place it takes at the end. Dropped before, it vanishes.
pub struct OutputFolder {
    /// As the user calls it.
    name: PathBuf,
    /// Behind all links.
    target: PathBuf,
    staging: PathBuf,
    /// What an earlier command wrote there; `None` if there is no folder.
    before: Option<BTreeSet<String>>,
}

impl OutputFolder {
    /// Begins the folder that will be `name`. One that is there must be a folder, and not hold results whose files are
    /// not known: they would stay beside the new ones.
    pub fn begin(name: &Path) -> Result<OutputFolder> {
        let cannot = || format!("cannot make the folder {}", name.display());
        let (target, before) = match fs::metadata(name) {
            Ok(there) if there.is_dir() => (name.canonicalize().with_context(cannot)?, Some(listed(name)?)),
            Ok(_) => bail!("{}: it is there, and no folder", cannot()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let above = name.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
                fs::create_dir_all(above).with_context(cannot)?;
                let last = name.file_name().with_context(cannot)?;
                (above.canonicalize().with_context(cannot)?.join(last), None)
            }
            Err(error) => return Err(error).with_context(cannot),
        };
        let staging = match make_beside(&target) {
            // Its own folder may be writable all the same.
            Err(_) if before.is_some() => make_beside(&target.join(".weft")),
            made => made,
        };
        Ok(OutputFolder { name: name.to_owned(), target, staging: staging.with_context(cannot)?, before })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Whether results of an earlier command stand in its place.
    pub fn replaces_results(&self) -> bool {
        self.before.as_ref().is_some_and(|before| !before.is_empty())
    }

    /// Puts what was written in its place, and removes what an earlier command wrote there.
    pub fn finish(self) -> Result<()> {
        let new = entries(&self.staging)?;
        let list: String = new.iter().map(|name| format!("{name}\n")).collect();
        output::text(Some(&self.staging.join(LIST)), &list)?;
        let Some(before) = &self.before else {
            return fs::rename(&self.staging, &self.target)
                .with_context(|| format!("cannot make the folder {}", self.name.display()));
        };
        let is_own = |name: &String| before.contains(name) || name == LIST;
        if entries(&self.target)?.iter().all(is_own) && self.exchange().is_ok() {
            // The older results are there now, and go with `self`.
            return Ok(());
        }
        // Until all is there, the list names what was there before, too.
        let both: String = before.union(&new).map(|name| format!("{name}\n")).collect();
        output::text(Some(&self.target.join(LIST)), &both)?;
        for name in &new {
            put(&self.staging.join(name), &self.target.join(name))?;
        }
        for stale in before.difference(&new) {
            let stale = self.target.join(stale);
            match fs::remove_file(&stale) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", stale.display()));
                }
                _ => {}
            }
        }
        put(&self.staging.join(LIST), &self.target.join(LIST))
    }

    /// What there is after a failure, such as logs that say why: it stays, if nothing else stands in its place.
    pub fn leave(self) {
        if self.before.is_none() {
            // The failure is told by somebody else.
            let _ = self.finish();
        }
    }

    /// Exchanges the two folders. Not where this process is in the one that would go.
    fn exchange(&self) -> io::Result<()> {
        if std::env::current_dir()?.starts_with(&self.target) {
            return Err(ErrorKind::ResourceBusy.into());
        }
        let old = fs::metadata(&self.target)?;
        let own = fs::metadata(&self.staging)?;
        if (old.uid(), old.gid()) != (own.uid(), own.gid()) {
            chown(&self.staging, Some(old.uid()), Some(old.gid()))?;
        }
        fs::set_permissions(&self.staging, old.permissions())?;
        exchange(&self.staging, &self.target)
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        // It may have another name by now; there is nobody to tell.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

/// Makes the folder `target.PROCESS.partial`.
fn make_beside(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().unwrap_or(OsStr::new("weft"));
    for number in 0..MOST_NAMES {
        let mut name = name.to_owned();
        let number = if number == 0 { String::new() } else { format!(".{number}") };
        name.push(format!(".{}{number}.partial", std::process::id()));
        let made = target.with_file_name(name);
        match fs::create_dir(&made) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => return done.map(|()| made),
        }
    }
    Err(io::Error::other("there are too many folders named .partial beside it; remove them"))
}

/// The names in a folder, but for those of folders that are not finished.
fn entries(folder: &Path) -> Result<BTreeSet<String>> {
    let cannot = || format!("cannot read the folder {}", folder.display());
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let name = entry.with_context(cannot)?.file_name().to_string_lossy().into_owned();
        if !(name.starts_with(".weft.") && name.ends_with(".partial")) {
            names.insert(name);
        }
    }
    Ok(names)
}

/// The files that an earlier command wrote.
fn listed(folder: &Path) -> Result<BTreeSet<String>> {
    let path = folder.join(LIST);
    match read_regular(&path, Kind::Data.limit()) {
        // Only names within the folder: nobody's list removes what lies elsewhere.
        Ok(list) => {
            let list = String::from_utf8_lossy(&list);
            Ok(list.lines().filter(|name| is_plain(name)).map(str::to_owned).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => match entries(folder)?.iter().find(|name| is_result(name))
        {
            Some(found) => bail!(
                "{} holds results whose files are not known, such as {found}: new ones would stand beside them; remove \
                 the folder, or name another",
                folder.display()
            ),
            None => Ok(BTreeSet::new()),
        },
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != ".." && name != "." && !name.contains('/')
}

/// Whether a file's name is one that only results have.
fn is_result(name: &str) -> bool {
    ["results.json", "runs.csv", "runs", "run.json", "tables.json", "pacing.json"].contains(&name)
        || name.ends_with(".trace.jsonl")
        || (name.starts_with("port-") && name.ends_with(".pcapng"))
}

/// Refuses a folder that holds the results of a command that fills folders as a whole.
pub fn refuse_whole(folder: &Path) -> Result<()> {
    match fs::symlink_metadata(folder.join(LIST)) {
        Ok(_) => bail!("{} holds the results of one run; remove it, or give another --out", folder.display()),
        Err(_) => Ok(()),
    }
}

/// Gives a finished file its name, or writes through what is there and is no regular file.
fn put(from: &Path, to: &Path) -> Result<()> {
    let is_other = fs::symlink_metadata(to).is_ok_and(|there| !there.is_file());
    if !is_other && fs::rename(from, to).is_ok() {
        return Ok(());
    }
    // A device, a link, or another file system.
    let mut file = PendingFile::create(to)?;
    let mut writer = file.take_writer();
    let mut source = File::open(from).with_context(|| format!("cannot open {}", from.display()))?;
    io::copy(&mut source, &mut writer)?;
    file.finish(writer)
}
