//! A terminal to run commands on: they behave otherwise when somebody looks.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::wait_for;

/// What is shown on a pseudoterminal.
pub struct Terminal(Arc<Mutex<Vec<u8>>>);

impl Terminal {
    /// Opens one, and gives the end that a command is started on.
    ///
    /// # Errors
    ///
    /// If the kernel has none left.
    pub fn open() -> Result<(Terminal, OwnedFd)> {
        let (mut screen, mut command) = (-1, -1);
        // SAFETY: writes both descriptors; a name, settings and a size are not asked for or given.
        let result =
            unsafe { libc::openpty(&raw mut screen, &raw mut command, ptr::null_mut(), ptr::null(), ptr::null()) };
        if result != 0 {
            return Err(std::io::Error::last_os_error()).context("cannot open a terminal");
        }
        // SAFETY: the call succeeded, and the descriptors belong to nobody else.
        let (mut screen, command) = unsafe { (File::from_raw_fd(screen), OwnedFd::from_raw_fd(command)) };
        let shown = Arc::new(Mutex::new(Vec::new()));
        let filled = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The kernel gives an error when nobody has the other end any more.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                filled.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..count]);
            }
        });
        Ok((Terminal(shown), command))
    }

    /// All that was shown up to now.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits until these words are shown.
    ///
    /// # Errors
    ///
    /// If they are not after `limit`.
    pub fn wait_for(&self, words: &str, limit: Duration) -> Result<()> {
        match wait_for(words, limit, || self.shown().contains(words)) {
            Err(error) => bail!("{error}: {}", self.shown()),
            shown => shown,
        }
    }
}
