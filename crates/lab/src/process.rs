//! Processes within a node's namespace.

use crate::error::LabError;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use weftwire_linux::namespace::NetworkNamespace;
use weftwire_linux::privileges::User;
use weftwire_linux::system::die_with_parent;

/// Starts a command in a namespace, in a process group of its own, as another user if one is given. It ends with the thread
/// that starts it.
pub(crate) fn start_in(namespace: &str, mut command: Command, user: Option<User>) -> Result<Child, LabError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error| LabError::system(format!("start {program} in namespace {namespace}"), error);
    let entry = NetworkNamespace::open(namespace).map_err(failed)?;
    command.process_group(0);
    // SAFETY: setns and what changes the user are allowed between fork and exec, and nothing is allocated here.
    unsafe { command.pre_exec(move || entry.enter().and_then(|()| user.map_or(Ok(()), User::become_for_good))) };
    // Behind the change of the user, which forgets it.
    die_with_parent(&mut command);
    command.spawn().map_err(failed)
}

/// Priority of what answers packets one by one: above everything ordinary, below the relay.
const PRIORITY: i32 = 5;

/// Lets the calling thread run before all ordinary ones, if that is allowed. For threads that mostly wait: with other work on the
/// machine they would else answer milliseconds late, and a run would measure that. May be called between fork and exec.
pub(crate) fn answer_at_once() {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: reads one sched_param; 0 is the calling thread. Without the permission all goes on as before.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
}

/// Ends a process and its group: politely, and after `patience` for good. Returns its exit code, if it had one.
pub(crate) fn end(child: &mut Child, patience: Duration) -> Option<i32> {
    let deadline = Instant::now() + patience;
    signal(child, libc::SIGTERM);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            _ => {
                signal(child, libc::SIGKILL);
                return child.wait().ok()?.code();
            }
        }
    }
}

/// Signals a process and its group.
fn signal(child: &Child, signal: i32) {
    // SAFETY: killpg takes numbers. The child has not been waited for, so that its number is still its own, and leads
    // the group of that number.
    unsafe { libc::killpg(child.id().cast_signed(), signal) };
}
