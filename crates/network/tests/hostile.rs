//! No text makes the reader panic, hang or take the memory: valid files with random changes, and files that ask for much.
#![allow(clippy::disallowed_methods, reason = "tests read their fixtures")]

use proptest::prelude::*;
use std::fs;
use std::path::Path;
use weftwire_network::read;

#[path = "../../../fuzz/src/network_read.rs"]
mod body;

fn texts(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_none_or(|ending| ending == "toml"));
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The corpus of the fuzz target `network_read`, on the stable toolchain.
#[test]
fn network_read() {
    for text in texts("../../fuzz/corpus/network_read") {
        // Shown if the target panics.
        println!("{}", String::from_utf8_lossy(&text));
        body::network_read(&text);
    }
}

proptest! {
    /// Bytes cut out, put in, or exchanged for parts of other files.
    #[test]
    fn mutated_files(file in 0usize..1000, other in 0usize..1000, at in any::<usize>(), length in 0usize..40,
                     from in any::<usize>(), taken in 0usize..40, byte in any::<u8>()) {
        let texts: Vec<Vec<u8>> =
            ["../../examples/networks", "tests/files/valid", "tests/files/invalid"].into_iter().flat_map(texts).collect();
        let (mut text, other) = (texts[file % texts.len()].clone(), &texts[other % texts.len()]);
        let at = at % text.len();
        let end = (at + length).min(text.len());
        let from = from % other.len();
        let mut put = other[from..(from + taken).min(other.len())].to_vec();
        put.push(byte);
        text.splice(at..end, put);
        body::network_read(&text);
    }
}

fn refused(text: &str) -> String {
    let reading = read("large.toml", text, &[], &|_| Err(std::io::Error::other("no files").into()));
    assert!(reading.network.is_none());
    reading.diagnostics.iter().map(|found| found.message.clone() + "\n").collect()
}

#[test]
fn what_asks_for_too_much_is_refused() {
    let topology = |kind: &str| refused(&format!("duration = \"1s\"\n[topology]\n{kind}\n"));
    for kind in [
        "kind = \"star\"\nleaves = 4294967295",
        "kind = \"dumbbell\"\npairs = 4294967295",
        "kind = \"parking-lot\"\nhops = 4294967295",
        "kind = \"chain\"\nlength = 4294967295",
        "kind = \"fat-tree\"\nk = 4294967294",
        "kind = \"as-graph\"\nnodes = 4294967295",
        "kind = \"as-graph\"\nnodes = 50000\ndegree = 64",
        "kind = \"as-graph\"\nnodes = 5\nhosts = 4294967295",
    ] {
        assert!(topology(kind).contains("more than 100000 nodes"), "{kind}");
    }
    assert!(topology("kind = \"star\"\nleaves = 70000").contains("more than 65535 ports"));
    let star = "kind = \"star\"\nleaves = 2000\n[[traffic]]\nkind = \"bulk\"\nfrom = \"leaf*\"\nto = \"leaf*\"\n";
    assert!(topology(&format!("{star}pairs = \"all\"")).contains("more than 1000000 parts of traffic"));
    assert!(topology(&format!("{star}pairs = \"random\"\ncopies = 4294967295")).contains("more than 1000000"));
    let change = "[[changes]]\nat = \"0.5s\"\nlink = \"*\"\ndelay = \"1ms\"\n".repeat(100);
    assert!(topology(&format!("kind = \"star\"\nleaves = 2000\n{change}")).contains("more than 200000 changes"));
    let routes = "[[routes]]\nnode = \"*\"\nto = \"*\"\nvia = \"hub\"\n";
    assert!(topology(&format!("kind = \"star\"\nleaves = 2000\n{routes}")).contains("more than 1000000 static routes"));
    let sweep = "[sweep]\na = [1,2,3,4,5,6,7,8,9,10]\nb = [1,2,3,4,5,6,7,8,9,10]\nc = [1,2,3,4,5,6,7,8,9,10]\n\
                 d = [1,2,3,4,5,6,7,8,9,10]\ne = [1,2,3,4,5,6,7,8,9,10]\nf = [1,2]";
    assert!(topology(&format!("kind = \"star\"\nleaves = 2\n{sweep}")).contains("more than 100000 combinations"));
}

/// Large networks are read, and by their counts completely.
#[test]
fn large_networks_are_read() {
    let read = |text: &str| {
        read("large.toml", text, &[], &|_| Err(std::io::Error::other("no files").into())).network.expect("it is valid")
    };
    let flows = "[[traffic]]\nkind = \"flows\"\nfrom = \"*host*\"\nto = \"*host*\"\npairs = \"random\"\nrate = \"1Mbit/s\"\n\
                 size = \"websearch\"\n";
    let tree = read(&format!("duration = \"1s\"\n[topology]\nkind = \"fat-tree\"\nk = 32\n{flows}"));
    assert_eq!((tree.nodes.len(), tree.links.len(), tree.traffic.len()), (8_192 + 1_280, 3 * 8_192, 8_192));
    let graph =
        read(&format!("duration = \"1s\"\n[topology]\nkind = \"as-graph\"\nnodes = 10000\nhosts = 1000\n{flows}"));
    assert_eq!((graph.nodes.len(), graph.traffic.len()), (11_000, 1_000));
}
