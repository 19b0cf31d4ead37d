//! Files to be served, and what a client makes of them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;
use sha2::{Digest as _, Sha256};

use crate::Namespace;

/// Bytes read or written at a time.
const CHUNK: usize = 1 << 18;

/// A file of reproducible random bytes, so that any loss, doubling or reordering changes its digest.
#[derive(Debug, Clone)]
pub struct Payload {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 digest, in hexadecimal.
    pub sha256: String,
}

impl Payload {
    /// Writes `bytes` bytes drawn from `seed` to `path`. A file of that length that is there already is kept.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or read.
    pub fn create(path: &Path, bytes: u64, seed: u64) -> Result<Payload> {
        // Tests that run side by side may want the same file.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if !path.metadata().is_ok_and(|it| it.len() == bytes) {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let partial = path.with_extension(format!("{}-{number}.partial", std::process::id()));
            generate(&partial, bytes, seed).with_context(|| format!("cannot write {}", partial.display()))?;
            std::fs::rename(&partial, path)?;
        }
        Ok(Payload { path: path.to_owned(), bytes, sha256: sha256_of_file(path)? })
    }
}

fn generate(path: &Path, bytes: u64, seed: u64) -> std::io::Result<()> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut file = BufWriter::with_capacity(CHUNK, File::create(path)?);
    let mut left = bytes;
    while left > 0 {
        let word = random.next_u64().to_le_bytes();
        let count = usize::try_from(left).map_or(word.len(), |left| left.min(word.len()));
        file.write_all(&word[..count])?;
        left -= count as u64;
    }
    file.flush()
}

/// The SHA-256 digest of a file, in hexadecimal.
///
/// # Errors
///
/// If the file cannot be read.
pub fn sha256_of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hexadecimal(digest));
        }
        digest.update(&buffer[..count]);
    }
}

fn hexadecimal(digest: Sha256) -> String {
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String never fails");
        text
    })
}

/// A finished HTTP download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Length of the body.
    pub bytes: u64,
    /// SHA-256 digest of the body, in hexadecimal.
    pub sha256: String,
}

/// Gets `path` by HTTP/1.1 on a new connection from `namespace`, and hashes the body.
///
/// # Errors
///
/// If the connection fails, the answer is not 200, the body is shorter than announced, or `limit` passes.
pub fn download(namespace: &Namespace, server: SocketAddr, path: &str, limit: Duration) -> Result<Download> {
    let mut digest = Sha256::new();
    let bytes = fetch(namespace, server, path, limit, |piece| digest.update(piece))?;
    Ok(Download { bytes, sha256: hexadecimal(digest) })
}

/// Like [`download`], handing the body to `sink` in pieces. Gives the body's length.
///
/// # Errors
///
/// As [`download`].
pub fn fetch(
    namespace: &Namespace,
    server: SocketAddr,
    path: &str,
    limit: Duration,
    mut sink: impl FnMut(&[u8]),
) -> Result<u64> {
    let deadline = Instant::now() + limit;
    let mut stream = namespace.connect(server, limit)?.with_context(|| format!("cannot connect to {server}"))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n")?;

    let mut buffer = vec![0; CHUNK];
    let mut filled = 0;
    let body = loop {
        let count = stream.read(&mut buffer[filled..])?;
        ensure!(count > 0, "the connection ended in the header of {path}");
        filled += count;
        if let Some(end) = buffer[..filled].windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let announced = body_length(&buffer[..body])?;
    sink(&buffer[body..filled]);
    let mut received = (filled - body) as u64;
    while received < announced {
        let count =
            stream.read(&mut buffer).with_context(|| format!("{path}: after {received} of {announced} bytes"))?;
        if count == 0 || Instant::now() > deadline {
            bail!("{path} broke off after {received} of {announced} bytes");
        }
        sink(&buffer[..count]);
        received += count as u64;
    }
    Ok(received)
}

/// Sends bytes on a connection and closes it for sending, while it reads to the end. The SHA-256 digest of what it read, in hexadecimal.
///
/// # Errors
///
/// The connection breaks off.
pub fn exchange(mut stream: TcpStream, bytes: &[u8]) -> std::io::Result<String> {
    let mut writer = stream.try_clone()?;
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            writer.write_all(bytes)?;
            writer.shutdown(Shutdown::Write)
        });
        let (mut digest, mut buffer) = (Sha256::new(), vec![0; CHUNK]);
        loop {
            match stream.read(&mut buffer)? {
                0 => break,
                count => digest.update(&buffer[..count]),
            }
        }
        writing.join().expect("it does not panic")?;
        Ok(hexadecimal(digest))
    })
}

/// Closes a connection with a reset (socket(7), `SO_LINGER`).
///
/// # Errors
///
/// As setsockopt(2).
pub fn reset(stream: TcpStream) -> std::io::Result<()> {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of_val(&at_once) as libc::socklen_t;
    let value = (&raw const at_once).cast();
    // SAFETY: the kernel reads one `linger` from a valid place.
    match unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, length) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn body_length(header: &[u8]) -> Result<u64> {
    let header = String::from_utf8_lossy(header);
    ensure!(header.starts_with("HTTP/1.1 200 "), "not an answer of success: {header}");
    let length = header.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    length.with_context(|| format!("no content length in {header}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_reproducible_and_hashed() -> Result<()> {
        let folder = std::env::temp_dir();
        let name = |n: u32| folder.join(format!("weft-payload-{}-{n}", std::process::id()));
        let (a, b) = (Payload::create(&name(1), 1003, 7)?, Payload::create(&name(2), 1003, 7)?);
        let c = Payload::create(&name(3), 1003, 8)?;
        assert_eq!(a.path.metadata()?.len(), 1003);
        assert_eq!(a.sha256, b.sha256);
        assert_ne!(a.sha256, c.sha256);
        for payload in [a, b, c] {
            std::fs::remove_file(payload.path)?;
        }
        Ok(())
    }

    #[test]
    fn the_digest_is_sha256() {
        let digest = Sha256::new_with_prefix("abc");
        assert_eq!(hexadecimal(digest), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn the_body_length_is_found_in_a_successful_answer_only() {
        assert_eq!(body_length(b"HTTP/1.1 200 OK\r\ncontent-Length: 12\r\n\r\n").unwrap(), 12);
        assert!(body_length(b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\n").is_err());
        assert!(body_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
