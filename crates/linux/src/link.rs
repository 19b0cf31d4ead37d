//! What becomes of the interfaces of a run: they go down, go away, come back, and take longer or shorter packets
//! (rtnetlink(7)).

use crate::control::Condition;
use crate::error::LinuxError;
use crate::ethtool;
use crate::interface::Interface;
use crate::port::FramePort;
use crate::system::{check, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use weftwire_core::control::PortChange;

/// Tells when interfaces of this network namespace change. Needs no privileges.
pub(crate) struct LinkWatch(OwnedFd);

impl LinkWatch {
    pub(crate) fn open() -> Result<LinkWatch, LinuxError> {
        let failed = |error| LinuxError::system("watch interfaces", error);
        let watch =
            socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, libc::NETLINK_ROUTE).map_err(failed)?;
        // SAFETY: sockaddr_nl is plain data for which all zeros is valid.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of the address.
        check(unsafe { libc::bind(watch.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) }).map_err(failed)?;
        Ok(LinkWatch(watch))
    }

    /// Whether anything has changed since the last call. What it was is not read: whoever asks looks for himself.
    pub(crate) fn has_news(&self) -> bool {
        let (mut news, mut message) = (false, [0_u8; 1]);
        loop {
            // SAFETY: the kernel writes at most one byte; the rest of the message is thrown away.
            let result = unsafe { libc::recv(self.0.as_raw_fd(), message.as_mut_ptr().cast(), 1, libc::MSG_DONTWAIT) };
            match check(result as i32) {
                Ok(_) => news = true,
                // More than was read in time: then there are news.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => news = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return news,
            }
        }
    }

    /// Readable when something has changed.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What is new of an interface.
#[derive(Debug, Default)]
pub(crate) struct LinkNews {
    /// It has another condition.
    pub(crate) condition: bool,
    /// What that means for its port.
    pub(crate) changes: Vec<PortChange>,
    /// It is back, and the kernel does not let the run have it.
    pub(crate) refused: Option<io::Error>,
}

/// The interface of a port.
pub(crate) struct PortLink {
    /// The name by which the user knows it.
    name: String,
    /// Whether the port has an interface at all: those of tests have none.
    watched: bool,
    /// Its number in the kernel, as long as it is there; an interface that comes back has another one.
    index: Option<u32>,
    /// Most bytes of a packet, when it was there last.
    mtu: Option<usize>,
    pub(crate) condition: Condition,
    pub(crate) times_gone: u64,
}

impl PortLink {
    /// The interface of an open port.
    pub(crate) fn of(name: &str, device: &mut dyn FramePort) -> PortLink {
        let index = Interface::find(name).ok().map(|interface| interface.index);
        let (name, watched) = (name.to_owned(), index.is_some());
        let mut link = PortLink { name, watched, index, mtu: None, condition: Condition::Up, times_gone: 0 };
        link.look(device);
        link
    }

    /// Looks what has become of the interface, and takes one that has come back up again.
    pub(crate) fn look(&mut self, device: &mut dyn FramePort) -> LinkNews {
        let mut news = LinkNews::default();
        if !self.watched {
            return news;
        }
        let there = self.index.and_then(Interface::of_index);
        if there.is_none() && self.index.take().is_some() {
            self.times_gone += 1;
        }
        let found = there.or_else(|| {
            let found = Interface::find(&self.name).ok().filter(|found| found.link == device.link())?;
            // Another program may hold it, or it is one that this run may not have.
            if let Err(error) = device.take_up(&found) {
                news.refused = Some(error);
                return None;
            }
            self.index = Some(found.index);
            Some(found)
        });
        let condition = match &found {
            None => Condition::Gone,
            Some(interface) if !interface.up => Condition::Down,
            Some(_) => Condition::Up,
        };
        if let Some(interface) = found {
            device.set_mtu(interface.mtu);
            let before = self.mtu.replace(interface.mtu);
            if before.is_some_and(|before| before != interface.mtu) {
                news.changes.extend(self.mtu_change());
            }
        }
        news.condition = condition != self.condition;
        if news.condition {
            forget_error(device.descriptor());
        }
        let was_up = std::mem::replace(&mut self.condition, condition) == Condition::Up;
        match (was_up, condition == Condition::Up) {
            (true, false) => news.changes.push(PortChange::Down),
            (false, true) => news.changes.push(PortChange::Up),
            _ => {}
        }
        news
    }

    /// What a function is told of it at the start.
    pub(crate) fn first_changes(&self) -> impl Iterator<Item = PortChange> + use<> {
        let down = self.condition != Condition::Up;
        self.mtu_change().into_iter().chain(down.then_some(PortChange::Down))
    }

    fn mtu_change(&self) -> Option<PortChange> {
        self.mtu.map(|bytes| PortChange::Mtu { bytes: u32::try_from(bytes).unwrap_or(u32::MAX) })
    }

    /// Whether frames come and go: a device may be up and not yet ready (`IFF_RUNNING`, RFC 2863).
    pub(crate) fn is_operational(&self) -> bool {
        let Some(interface) = self.index.and_then(Interface::of_index) else { return !self.watched };
        // The kernel says that a device runs shortly before its queues take frames. It does both under a lock that this
        // question waits for.
        interface.up && interface.running && ethtool::has_link(&interface.name).unwrap_or(true)
    }

    /// How the interface is, for people.
    pub(crate) fn said(&self) -> &'static str {
        match self.condition {
            Condition::Up => "is up again",
            Condition::Down => "is down; frames for it are lost until it is up again",
            Condition::Gone => "is gone; the run goes on without it until it is back",
        }
    }
}

/// An error that waits on a socket would make waiting for frames end at once, again and again.
fn forget_error(descriptor: BorrowedFd<'_>) {
    let (mut error, mut length) = (0_i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes. Devices that are no sockets refuse, and have no such error.
    unsafe {
        libc::getsockopt(
            descriptor.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            std::ptr::from_mut(&mut error).cast(),
            &mut length,
        );
    }
}
