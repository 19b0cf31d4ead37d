//! Giving up privileges once everything is open: root becomes an ordinary user, capabilities go, and neither can be
//! had again (capabilities(7), prctl(2) `PR_SET_NO_NEW_PRIVS`).

use crate::error::LinuxError;
use crate::system::check;
use std::env;
use std::ffi::{CString, c_ulong};
use std::io;

/// A user to become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// User number.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl User {
    /// The user that root becomes: `name` if given, else the one who called `sudo`, else `nobody`.
    ///
    /// # Errors
    /// [`LinuxError::NoUser`].
    pub fn choose(name: Option<&str>) -> Result<User, LinuxError> {
        if let Some(name) = name {
            return User::named(name);
        }
        let number = |variable| env::var(variable).ok()?.parse::<u32>().ok();
        match (number("SUDO_UID"), number("SUDO_GID")) {
            (Some(uid), Some(gid)) if uid != 0 => Ok(User { uid, gid }),
            _ => User::named("nobody"),
        }
    }

    /// The user of this name.
    ///
    /// # Errors
    /// [`LinuxError::NoUser`].
    pub fn named(name: &str) -> Result<User, LinuxError> {
        let absent = || LinuxError::NoUser(name.to_owned());
        let c_name = CString::new(name).map_err(|_| absent())?;
        // SAFETY: a valid C string. The result points into static memory of the C library, which is read at once;
        // this runs before any other thread is started.
        unsafe {
            let entry = libc::getpwnam(c_name.as_ptr());
            if entry.is_null() { Err(absent()) } else { Ok(User { uid: (*entry).pw_uid, gid: (*entry).pw_gid }) }
        }
    }

    /// Lets the process be this user and nobody else, with no further groups. May be called between fork and exec.
    pub(crate) fn become_for_good(self) -> io::Result<()> {
        // SAFETY: `setgroups` reads one group number; the others take no pointers.
        unsafe {
            check(libc::setgroups(1, &self.gid))?;
            check(libc::setresgid(self.gid, self.gid, self.gid))?;
            check(libc::setresuid(self.uid, self.uid, self.uid)).map(drop)
        }
    }
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    // SAFETY: no pointers, can't fail.
    unsafe { libc::geteuid() == 0 }
}

/// Gives up everything: root becomes `user`; every capability goes, also those of a program that was given some by
/// `setcap`; and no program started later can gain any.
///
/// # Errors
/// [`LinuxError::System`]: the process must end, as it would go on with privileges.
pub fn drop_privileges(user: Option<User>) -> Result<(), LinuxError> {
    let failed = |error| LinuxError::system("drop privileges", error);
    // Needs CAP_SETPCAP, which root has and a program with only its two capabilities may lack; `no_new_privs` below
    // makes the bounding set irrelevant anyway.
    for capability in 0..64 {
        let _ = process_control(libc::PR_CAPBSET_DROP, capability);
    }
    if let Some(user) = user.filter(|_| is_root()) {
        user.become_for_good().map_err(failed)?;
    }
    process_control(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong).map_err(failed)?;
    clear_capabilities().map_err(failed)?;
    process_control(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(failed)?;
    // SAFETY: no pointers. It must fail: else the above did not work.
    if user.is_some_and(|user| user.uid != 0) && unsafe { libc::setuid(0) } == 0 {
        return Err(failed(io::Error::other("root could be regained")));
    }
    Ok(())
}

fn process_control(option: i32, argument: c_ulong) -> io::Result<()> {
    let none: c_ulong = 0;
    // SAFETY: the options used here take numbers only.
    check(unsafe { libc::prctl(option, argument, none, none, none) }).map(drop)
}

/// `capset` with three empty sets (version 3 of the interface: two words a set).
fn clear_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Head {
        version: u32,
        process: i32,
    }
    let head = Head { version: 0x2008_0522, process: 0 };
    let sets = [0_u32; 6];
    // SAFETY: the kernel reads a head and two triples of words, which outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_ref(&head), sets.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
