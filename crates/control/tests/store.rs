//! The store: what was written is there after the next start, and nothing else is taken for a store.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of a platform: files")]

use std::fs;
use std::path::{Path, PathBuf};
use weftwire_control::store::{Contents, Kept, Store, StoreError, Write};
use weftwire_workload::Numbers;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn kept(number: u64) -> Kept {
    Kept { number, host: format!("host{}", number % 7), filter: format!("add_order.price > {number}") }
}

fn fill(store: &Store, numbers: std::ops::Range<u64>) {
    let all: Vec<Kept> = numbers.clone().map(kept).collect();
    let write = |it: &'_ Kept| -> (u64, String, String) { (it.number, it.host.clone(), it.filter.clone()) };
    let all: Vec<_> = all.iter().map(write).collect();
    let writes: Vec<Write<'_>> =
        all.iter().map(|(number, host, filter)| Write::Insert { number: *number, host, filter }).collect();
    store.write(&writes, numbers.end - 1, numbers.end).unwrap();
}

#[test]
fn what_was_written_is_there_again() {
    let path = folder("again").join("store");
    let (store, contents) = Store::open(&path, 7).unwrap();
    assert_eq!(contents, Contents { identity: 7, revision: 0, next: 1, subscriptions: vec![] });
    fill(&store, 1..2_000);
    store.write(&[Write::Remove { number: 5 }, Write::Remove { number: 1_999 }], 2_001, 2_000).unwrap();
    assert!(matches!(Store::open(&path, 8), Err(StoreError::InUse { .. })));
    drop(store);
    let (_, contents) = Store::open(&path, 8).unwrap();
    let subscriptions = (1..1_999).filter(|number| *number != 5).map(kept).collect();
    assert_eq!(contents, Contents { identity: 7, revision: 2_001, next: 2_000, subscriptions });
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = folder("other");
    let text = folder.join("text");
    fs::write(&text, "subscriptions: none\n".repeat(1000)).unwrap();
    assert!(matches!(Store::open(&text, 1), Err(StoreError::Foreign { .. })));
    assert_eq!(fs::read_to_string(&text).unwrap(), "subscriptions: none\n".repeat(1000));
    assert!(matches!(Store::open(&folder, 1), Err(StoreError::Foreign { .. })));
    assert!(matches!(Store::open(&folder.join("no/such/folder"), 1), Err(StoreError::System { .. })));

    let table = redb::TableDefinition::<u64, u64>::new("songs");
    let other = folder.join("other");
    write_with(&other, |write| drop(write.open_table(table).unwrap()));
    let error = Store::open(&other, 1).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");

    let meta = redb::TableDefinition::<&str, u64>::new("weftwire");
    let future = folder.join("future");
    write_with(&future, |write| drop(write.open_table(meta).unwrap().insert("layout", 2).unwrap()));
    assert!(matches!(Store::open(&future, 1), Err(StoreError::Layout { layout: 2, .. })));
}

#[test]
fn an_empty_file_is_a_store_only_if_asked_for() {
    let folder = folder("empty");
    let (empty, new) = (folder.join("empty"), folder.join("new"));
    fs::write(&empty, "").unwrap();
    drop(redb::Database::create(&new).unwrap());
    for path in [&empty, &new] {
        let error = Store::open(path, 3).unwrap_err();
        assert!(matches!(error, StoreError::Empty { .. }) && error.to_string().contains("--new"), "{error}");
        assert_eq!(Store::open_even_empty(path, 3).unwrap().1.identity, 3);
        assert_eq!(Store::open(path, 4).unwrap().1.identity, 3);
    }
    // One that was never there is made, and nothing is left beside it.
    assert_eq!(Store::open(&folder.join("absent"), 5).unwrap().1.identity, 5);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
}

fn write_with(path: &Path, fill: impl FnOnce(&redb::WriteTransaction)) {
    let database = redb::Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    fill(&write);
    write.commit().unwrap();
}

#[test]
fn damage_is_found_or_does_no_harm() {
    let path = folder("damage").join("store");
    let (store, _) = Store::open(&path, 7).unwrap();
    fill(&store, 1..500);
    drop(store);
    let (store, whole) = Store::open(&path, 7).unwrap();
    drop(store);
    let bytes = fs::read(&path).unwrap();
    let mut numbers = Numbers::new(5);
    let mut found = 0;
    for round in 0..60 {
        let mut damaged = bytes.clone();
        if round % 5 == 0 {
            damaged.truncate(numbers.below(bytes.len() as u64) as usize);
        } else {
            for _ in 0..1 + numbers.below(4) {
                let at = numbers.below(bytes.len() as u64) as usize;
                let run = (1 + numbers.below(64) as usize).min(bytes.len() - at);
                damaged[at..at + run].iter_mut().for_each(|byte| *byte ^= 1 + numbers.below(255) as u8);
            }
        }
        fs::write(&path, &damaged).unwrap();
        match Store::open(&path, 7) {
            Err(StoreError::Empty { .. }) if damaged.is_empty() => {}
            Ok((_, contents)) => assert!(contents == whole, "round {round}: other contents than were written"),
            Err(StoreError::Damaged { .. } | StoreError::Foreign { .. }) => found += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
    }
    assert!(found > 5, "{found}");
}
