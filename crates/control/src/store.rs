//! The subscriptions on disk: one file, written before anybody is answered.
//!
//! Layout 1, in tables of redb:
//!
//! | table | key | value |
//! |---|---|---|
//! | `weftwire` | `layout` | 1 |
//! | | `identity` | a random number, which tells stores apart |
//! | | `revision` | the number of the last change |
//! | | `next` | the number of the next subscription |
//! | `subscriptions` | number | host's name, filter as written |

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

const META: TableDefinition<&str, u64> = TableDefinition::new("weftwire");
const SUBSCRIPTIONS: TableDefinition<u64, (&str, &str)> = TableDefinition::new("subscriptions");
/// The layout that this program reads and writes.
const LAYOUT: u64 = 1;
/// Pages kept in memory; nothing is read after the start.
const CACHE: usize = 16 << 20;

/// A store that cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It has another opener.
    #[error("{path} is in use; one controller at a time may have it")]
    InUse {
        /// Its path.
        path: String,
    },
    /// Something else than a store.
    #[error("{path} is no store of subscriptions: {reason}; name another file, or one that is not there yet")]
    Foreign {
        /// Its path.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file without anything, which a store never is.
    #[error(
        "{path} is there and empty, as no store is, not even one without subscriptions: put a copy back, or begin a new \
         one in it with --new"
    )]
    Empty {
        /// Its path.
        path: String,
    },
    /// Written by another version.
    #[error("{path} has layout {layout}; this program reads layout {LAYOUT}: use the one that wrote it")]
    Layout {
        /// Its path.
        path: String,
        /// Its layout.
        layout: u64,
    },
    /// Its bytes have changed.
    #[error("{path} is damaged: {reason}; put a copy back, or begin with another file and subscribe again")]
    Damaged {
        /// Its path.
        path: String,
        /// What was found.
        reason: String,
    },
    /// The file system refused.
    #[error("cannot use {path}: {reason}")]
    System {
        /// Its path.
        path: String,
        /// Why.
        reason: String,
    },
}

/// A subscription as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its number.
    pub number: u64,
    /// The host's name.
    pub host: String,
    /// The filter as it was written.
    pub filter: String,
}

/// What a store had when it was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Tells stores apart.
    pub identity: u64,
    /// The number of the last change; 0 at first.
    pub revision: u64,
    /// The number of the next subscription, from 1.
    pub next: u64,
    /// By number.
    pub subscriptions: Vec<Kept>,
}

/// One change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write<'a> {
    /// A subscription begins.
    Insert {
        /// Its number.
        number: u64,
        /// The host's name.
        host: &'a str,
        /// The filter as it was written.
        filter: &'a str,
    },
    /// The subscription of this number ends.
    Remove {
        /// Its number.
        number: u64,
    },
}

/// An open store; the file is locked as long as it lives.
#[derive(Debug)]
pub struct Store {
    database: Database,
    path: PathBuf,
}

impl Store {
    /// Opens a store and reads it, or makes a new one with this identity if there is no such file.
    ///
    /// # Errors
    /// [`StoreError`]. A file that is there and empty was perhaps a store once, so it is none.
    pub fn open(path: &Path, identity: u64) -> Result<(Store, Contents), StoreError> {
        Store::open_or_begin(path, identity, false)
    }

    /// As [`Store::open`], but begins a new store in a file that is empty.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_even_empty(path: &Path, identity: u64) -> Result<(Store, Contents), StoreError> {
        Store::open_or_begin(path, identity, true)
    }

    fn open_or_begin(path: &Path, identity: u64, even_empty: bool) -> Result<(Store, Contents), StoreError> {
        let name = || path.display().to_string();
        match std::fs::metadata(path) {
            Ok(data) if !data.is_file() => {
                return Err(StoreError::Foreign { path: name(), reason: "it is no file".into() });
            }
            Ok(data) if data.len() > 0 => {}
            Ok(_) if !even_empty => return Err(StoreError::Empty { path: name() }),
            Ok(_) => Store::make(path, identity, true)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Store::make(path, identity, false)?,
            Err(error) => return Err(StoreError::System { path: name(), reason: error.to_string() }),
        }
        let database = builder().open(path).map_err(|error| failed(path, error.into()))?;
        let store = Store { database, path: path.to_owned() };
        if store.is_empty()? {
            if !even_empty {
                return Err(StoreError::Empty { path: name() });
            }
            store.begin(identity).map_err(|error| store.failed(error))?;
        }
        let contents = store.read()?;
        Ok((store, contents))
    }

    /// Makes a store beside the file, which then becomes it: whenever the program is killed, there is all of it or nothing.
    fn make(path: &Path, identity: u64, replace: bool) -> Result<(), StoreError> {
        let mut early = path.as_os_str().to_owned();
        early.push(format!(".{}", std::process::id()));
        let early = PathBuf::from(early);
        // One left by a program that is dead; if it can't be removed, it can't be made anew either.
        let _ = std::fs::remove_file(&early);
        let made = (|| -> Result<(), StoreError> {
            let database = builder().create(&early).map_err(|error| failed(path, error.into()))?;
            let store = Store { database, path: path.to_owned() };
            store.begin(identity).map_err(|error| store.failed(error))?;
            drop(store);
            // Whoever was faster keeps what he has made.
            let placed = if replace { std::fs::rename(&early, path) } else { std::fs::hard_link(&early, path) };
            match placed {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    std::fs::rename(&early, path).map_err(|error| failed(path, redb::Error::Io(error)))
                }
                _ => Ok(()),
            }
        })();
        // It has the other name now, or is of no use.
        let _ = std::fs::remove_file(&early);
        made
    }

    /// Makes changes, all or none. They are on the disk when it returns.
    ///
    /// # Errors
    /// [`StoreError`]; nothing has changed then, and nothing can be written until the store is opened again.
    pub fn write(&self, writes: &[Write<'_>], revision: u64, next: u64) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut table = transaction.open_table(SUBSCRIPTIONS)?;
                for write in writes {
                    match write {
                        Write::Insert { number, host, filter } => drop(table.insert(number, (*host, *filter))?),
                        Write::Remove { number } => drop(table.remove(number)?),
                    }
                }
                let mut meta = transaction.open_table(META)?;
                meta.insert("revision", revision)?;
                meta.insert("next", next)?;
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| self.failed(error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        let tables = || -> Result<usize, redb::Error> { Ok(self.database.begin_read()?.list_tables()?.count()) };
        tables().map(|count| count == 0).map_err(|error| self.failed(error))
    }

    fn begin(&self, identity: u64) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            for (key, value) in [("layout", LAYOUT), ("identity", identity), ("revision", 0), ("next", 1)] {
                meta.insert(key, value)?;
            }
            transaction.open_table(SUBSCRIPTIONS)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn read(&self) -> Result<Contents, StoreError> {
        let path = || self.path.display().to_string();
        let damaged = |reason: &str| StoreError::Damaged { path: path(), reason: reason.to_owned() };
        let transaction = self.database.begin_read().map_err(|error| self.failed(error.into()))?;
        let meta = match transaction.open_table(META) {
            Ok(meta) => meta,
            Err(TableError::Storage(error)) => return Err(self.failed(error.into())),
            Err(error) => return Err(StoreError::Foreign { path: path(), reason: error.to_string() }),
        };
        let number = |key: &str| -> Result<Option<u64>, StoreError> {
            let found = meta.get(key).map_err(|error| self.failed(error.into()))?;
            Ok(found.map(|value| value.value()))
        };
        match number("layout")? {
            Some(LAYOUT) => {}
            Some(layout) => return Err(StoreError::Layout { path: path(), layout }),
            None => return Err(StoreError::Foreign { path: path(), reason: "it has no layout".into() }),
        }
        let required = |key: &str| number(key)?.ok_or_else(|| damaged(&format!("it has no `{key}`")));
        let [identity, revision, next] = [required("identity")?, required("revision")?, required("next")?];
        let mut subscriptions = Vec::new();
        let read = |subscriptions: &mut Vec<Kept>| -> Result<(), redb::Error> {
            for entry in transaction.open_table(SUBSCRIPTIONS)?.iter()? {
                let (number, value) = entry?;
                let (host, filter) = value.value();
                subscriptions.push(Kept { number: number.value(), host: host.to_owned(), filter: filter.to_owned() });
            }
            Ok(())
        };
        read(&mut subscriptions).map_err(|error| self.failed(error))?;
        if subscriptions.last().is_some_and(|last| last.number >= next) {
            return Err(damaged("a subscription has a number that was not given yet"));
        }
        Ok(Contents { identity, revision, next, subscriptions })
    }

    fn failed(&self, error: redb::Error) -> StoreError {
        failed(&self.path, error)
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    // A damaged file is to be told, not trusted.
    builder.set_cache_size(CACHE).set_check_integrity_on_open(true);
    builder
}

fn failed(path: &Path, error: redb::Error) -> StoreError {
    let path = path.display().to_string();
    match error {
        redb::Error::DatabaseAlreadyOpen => StoreError::InUse { path },
        redb::Error::Corrupted(reason) => StoreError::Damaged { path, reason },
        redb::Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
            StoreError::Damaged { path, reason: "it ends too early".to_owned() }
        }
        error @ (redb::Error::TableDoesNotExist(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::UpgradeRequired(_)) => StoreError::Foreign { path, reason: error.to_string() },
        redb::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
            StoreError::Foreign { path, reason: error.to_string() }
        }
        error => StoreError::System { path, reason: error.to_string() },
    }
}
