//! Giving up privileges once everything is open: root becomes an ordinary user, capabilities go, and neither can be
//! had again (capabilities(7), prctl(2) `PR_SET_NO_NEW_PRIVS`).

use crate::error::LinuxError;
use crate::local::{ROOT, lock_file, own_folder};
use crate::system::{check, random_words};
use std::env;
use std::ffi::{CString, c_ulong};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Users of no name that runs become, each its own. systemd leaves these numbers to nobody ("Users, Groups, UIDs and GIDs on
/// systemd Systems").
pub const PRIVATE_USERS: RangeInclusive<u32> = 60_578..=61_183;

/// A user to become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// User number.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl User {
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
    pub fn become_for_good(self) -> io::Result<()> {
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
    own_uid() == 0
}

/// What root becomes once everything is open.
#[derive(Debug)]
pub struct Account {
    user: User,
    operator: Option<User>,
    /// Keeps the number from other processes.
    _lock: Option<OwnedFd>,
}

impl Account {
    /// The user `name` if given, else one of [`PRIVATE_USERS`], which no other process becomes as long as this value lives.
    /// So what runs can't reach each other: no signals, no debugger, no sockets, no files.
    ///
    /// # Errors
    /// [`LinuxError::NoUser`]; [`LinuxError::NoPrivateUser`] if all are taken; those of making [`ROOT`].
    pub fn choose(name: Option<&str>) -> Result<Account, LinuxError> {
        match name {
            Some(name) => {
                let user = User::named(name)?;
                Ok(Account { user, operator: Some(user), _lock: None })
            }
            None => {
                let folder = Path::new(ROOT).join("users");
                own_folder(Path::new(ROOT))?;
                own_folder(&folder)?;
                let [start] = random_words().map_err(|error| LinuxError::system("draw a random number", error))?;
                let (user, lock) = take_private(&folder, PRIVATE_USERS, start)?;
                Ok(Account { user, operator: sudo_user(), _lock: Some(lock) })
            }
        }
    }

    /// The user.
    pub fn user(&self) -> User {
        self.user
    }

    /// Who may use its sockets beside root: the user given by name, or else the one who called `sudo`.
    pub fn operator(&self) -> Option<User> {
        self.operator
    }
}

/// A number that is in no database of users and that no other process has, and the lock that keeps it so. The search begins
/// anywhere, so that a number is not soon somebody else's.
fn take_private(locks: &Path, numbers: RangeInclusive<u32>, start: u64) -> Result<(User, OwnedFd), LinuxError> {
    let count = u64::from(numbers.end() - numbers.start() + 1);
    for step in 0..count {
        let number = numbers.start() + ((start % count + step) % count) as u32;
        // SAFETY: numbers only; the results are only compared with null. This runs before any other thread is started.
        if unsafe { !libc::getpwuid(number).is_null() || !libc::getgrgid(number).is_null() } {
            continue;
        }
        let path = locks.join(number.to_string());
        let lock = lock_file(&path).map_err(|error| LinuxError::system(format!("lock {}", path.display()), error))?;
        if let Some(lock) = lock {
            return Ok((User { uid: number, gid: number }, lock));
        }
    }
    Err(LinuxError::NoPrivateUser)
}

/// The user as whom this process acts.
pub fn own_uid() -> u32 {
    // SAFETY: no pointers, can't fail.
    unsafe { libc::geteuid() }
}

/// The user who called `sudo`, if root was called so.
pub fn sudo_uid() -> Option<u32> {
    sudo_user().map(|user| user.uid)
}

fn sudo_user() -> Option<User> {
    let number = |variable| env::var(variable).ok()?.parse::<u32>().ok();
    let user = User { uid: number("SUDO_UID")?, gid: number("SUDO_GID")? };
    (is_root() && user.uid != 0).then_some(user)
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
    // No other process of the user may look into this one, or change it.
    process_control(libc::PR_SET_DUMPABLE, 0).map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_runs_have_one_user() {
        let folder = std::env::temp_dir().join(format!("weft-users-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let take = |start| take_private(&folder, 60_600..=60_603, start);
        let mut all: Vec<_> = (0..4).map(|_| take(6)).collect::<Result<_, _>>().unwrap();
        let numbers: Vec<u32> = all.iter().map(|(user, _)| user.uid).collect();
        assert_eq!(numbers, [60_602, 60_603, 60_600, 60_601]);
        assert!(matches!(take(0), Err(LinuxError::NoPrivateUser)));
        // One that ends leaves its own.
        let (user, lock) = all.remove(1);
        drop(lock);
        assert_eq!(take(0).unwrap().0, user);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
