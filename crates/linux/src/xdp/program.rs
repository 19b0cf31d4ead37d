//! The XDP program that hands frames to the sockets, by bpf(2). It goes away with its descriptors, however the process ends.

use crate::error::LinuxError;
use crate::system::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Where an interface runs the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// In the driver, before anything else.
    Native,
    /// In the network stack, for drivers that know no XDP.
    Generic,
}

/// The program, the sockets that it knows, and the interface that it runs on.
#[derive(Debug)]
pub(super) struct Program {
    sockets: OwnedFd,
    program: OwnedFd,
    /// Detaches the program when it is closed.
    link: Option<OwnedFd>,
}

// linux/bpf.h.
const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
/// linux/if_link.h.
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

impl Program {
    /// Loads the program and attaches it to the interface of this number and name, for so many sockets: one for each queue.
    pub(super) fn attach(index: u32, name: &str, queues: u32) -> Result<(Program, Mode), LinuxError> {
        let refused = |error| LinuxError::privileged(format!("load the XDP program of `{name}`"), CAPABILITIES, error);
        let sockets = make_map(queues).map_err(refused)?;
        let program = load(&instructions(sockets.as_raw_fd())).map_err(refused)?;
        let (link, mode) = attach(program.as_fd(), index).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => LinuxError::OtherXdpProgram(name.to_owned()),
            Some(libc::EINVAL) => LinuxError::Missing {
                feature: "links of XDP programs (BPF_LINK_CREATE)",
                since: "5.9",
                instead: "Use the option `socket` or `ring`",
            },
            _ => LinuxError::privileged(format!("attach the XDP program to `{name}`"), CAPABILITIES, error),
        })?;
        Ok((Program { sockets, program, link: Some(link) }, mode))
    }

    /// Frames of this queue go to this socket from now on, in place of the one before.
    pub(super) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value = socket.as_raw_fd();
        let mut attributes = UpdateElement {
            map: self.sockets.as_raw_fd() as u32,
            padding: 0,
            key: std::ptr::from_ref(&queue) as u64,
            value: std::ptr::from_ref(&value) as u64,
            flags: 0,
        };
        bpf(BPF_MAP_UPDATE_ELEM, &mut attributes).map(drop)
    }

    /// Goes on with the interface of this number, as the one before is gone.
    pub(super) fn move_to(&mut self, index: u32) -> io::Result<Mode> {
        // It may be attached to this one already, if something failed afterwards.
        self.link = None;
        let (link, mode) = attach(self.program.as_fd(), index)?;
        self.link = Some(link);
        Ok(mode)
    }
}

/// What loading and attaching need.
const CAPABILITIES: &str = "CAP_BPF and CAP_NET_ADMIN";

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Instruction {
    code: u8,
    /// Target in the low, source in the high half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// `return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)`: a frame goes to the socket of its queue, and to the
/// network stack where there is none.
fn instructions(sockets: i32) -> [Instruction; 6] {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_IMMEDIATE: u8 = 0x18;
    const MOVE_IMMEDIATE: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const OF_A_MAP: u8 = 1;
    /// In `struct xdp_md`.
    const RX_QUEUE_INDEX: i16 = 16;
    const REDIRECT_MAP: i32 = 51;
    const XDP_PASS: i32 = 2;
    let instruction = |code, target: u8, source: u8, offset, immediate| {
        let registers = match cfg!(target_endian = "little") {
            true => target | source << 4,
            false => target << 4 | source,
        };
        Instruction { code, registers, offset, immediate }
    };
    [
        instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(LOAD_IMMEDIATE, 1, OF_A_MAP, 0, sockets),
        instruction(0, 0, 0, 0, 0),
        instruction(MOVE_IMMEDIATE, 3, 0, 0, XDP_PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

fn make_map(entries: u32) -> io::Result<OwnedFd> {
    let word = size_of::<u32>() as u32;
    let mut attributes = MapCreate { kind: BPF_MAP_TYPE_XSKMAP, key_size: word, value_size: word, entries, flags: 0 };
    bpf_open(BPF_MAP_CREATE, &mut attributes)
}

fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    // The helper that is called needs no particular one.
    let license = c"Dual MIT/GPL";
    let mut attributes = ProgramLoad {
        kind: BPF_PROG_TYPE_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        ..ProgramLoad::default()
    };
    bpf_open(BPF_PROG_LOAD, &mut attributes)
}

/// In the driver where that knows XDP, else in the network stack.
fn attach(program: BorrowedFd<'_>, index: u32) -> io::Result<(OwnedFd, Mode)> {
    let attach = |flags| {
        let program = program.as_raw_fd() as u32;
        bpf_open(BPF_LINK_CREATE, &mut LinkCreate { program, interface: index, kind: BPF_XDP, flags })
    };
    match attach(XDP_FLAGS_DRV_MODE) {
        Ok(link) => Ok((link, Mode::Native)),
        // Why drivers refuse differs; a program that is there already and missing privileges would be no other in the network stack.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::EPERM)) => Err(error),
        Err(_) => Ok((attach(XDP_FLAGS_SKB_MODE)?, Mode::Generic)),
    }
}

/// `union bpf_attr` of `BPF_MAP_CREATE`, its beginning: what is left out is zero.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

/// Of `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct UpdateElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Of `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// Of `BPF_LINK_CREATE`.
#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    kind: u32,
    flags: u32,
}

fn bpf_open<A>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor, which these commands return, belongs to nobody else.
    bpf(command, attributes).map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn bpf<A>(command: libc::c_int, attributes: &mut A) -> io::Result<libc::c_int> {
    // SAFETY: the attributes are the beginning of those of the command, and what they point to outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>()) };
    check(result as libc::c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_what_the_kernel_knows() {
        let words = instructions(7).map(|instruction| {
            let Instruction { code, registers, offset, immediate } = instruction;
            (code, registers, offset, immediate)
        });
        let expected = [
            (0x61, 0x12, 16, 0),
            (0x18, 0x11, 0, 7),
            (0, 0, 0, 0),
            (0xb7, 0x03, 0, 2),
            (0x85, 0, 0, 51),
            (0x95, 0, 0, 0),
        ];
        #[cfg(target_endian = "little")]
        assert_eq!(words, expected);
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
