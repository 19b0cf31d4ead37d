//! TCP and its options (RFC 9293, RFC 7323, RFC 2018).

use crate::buffer::Buffer;
use crate::drop_reason::DropReason;

/// Bytes of the header without options.
pub const TCP_LENGTH: usize = 20;
/// Most bytes of options a header can carry.
pub const MAX_OPTIONS_LENGTH: usize = 40;

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    fixed: &'a [u8; TCP_LENGTH],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Tcp<'a> {
    /// Reads a segment out of an IP payload.
    ///
    /// # Errors
    /// `Truncated`, or `BadLength` for a data offset below 20 or beyond the segment, or an option of length below 2
    /// or beyond the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Tcp<'a>, DropReason> {
        let (fixed, behind) = bytes.split_first_chunk::<TCP_LENGTH>().ok_or(DropReason::Truncated)?;
        let options_length = (usize::from(fixed[12] >> 4) * 4).checked_sub(TCP_LENGTH).ok_or(DropReason::BadLength)?;
        let (options, payload) = behind.split_at_checked(options_length).ok_or(DropReason::BadLength)?;
        if !RawOptions::new(options).all_well_formed() {
            return Err(DropReason::BadLength);
        }
        Ok(Tcp { fixed, options, payload })
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Sequence number of the first payload byte, or of SYN.
    pub fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]])
    }

    /// The next sequence number expected from the other side; valid if ACK is set.
    pub fn acknowledgment(&self) -> u32 {
        u32::from_be_bytes([self.fixed[8], self.fixed[9], self.fixed[10], self.fixed[11]])
    }

    /// The flags.
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.fixed[13])
    }

    /// Receive window, not scaled.
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.fixed[14], self.fixed[15]])
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[16], self.fixed[17]])
    }

    /// Urgent pointer; valid if URG is set.
    pub fn urgent_pointer(&self) -> u16 {
        u16::from_be_bytes([self.fixed[18], self.fixed[19]])
    }

    /// The options in order, without padding.
    pub fn options(&self) -> impl Iterator<Item = TcpOption<'a>> {
        RawOptions::new(self.options).map(|raw| TcpOption::read(raw.bytes))
    }

    /// The options' bytes with their padding.
    pub fn option_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// Bytes of the header with its options.
    pub fn header_length(&self) -> usize {
        TCP_LENGTH + self.options.len()
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The flags byte of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Reset the connection.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Push.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgment number counts.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// The urgent pointer counts.
    pub const URG: TcpFlags = TcpFlags(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | flags.0)
    }

    /// This set without those.
    #[must_use]
    pub const fn without(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & !flags.0)
    }
}

/// Kind number of the end of the option list.
pub const OPTION_END: u8 = 0;
/// Kind number of the padding byte.
pub const OPTION_NOP: u8 = 1;
/// Kind number of the maximum segment size (RFC 9293).
pub const OPTION_MSS: u8 = 2;
/// Kind number of the window scale (RFC 7323).
pub const OPTION_WINDOW_SCALE: u8 = 3;
/// Kind number of SACK permitted (RFC 2018).
pub const OPTION_SACK_PERMITTED: u8 = 4;
/// Kind number of selective acknowledgments (RFC 2018).
pub const OPTION_SACK: u8 = 5;
/// Kind number of time stamps (RFC 7323).
pub const OPTION_TIMESTAMPS: u8 = 8;

/// One TCP option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpOption<'a> {
    /// Padding. Readers leave it out.
    NoOperation,
    /// Maximum segment size in bytes.
    MaximumSegmentSize(u16),
    /// Window scale: the shift count.
    WindowScale(u8),
    /// Selective acknowledgments are understood.
    SackPermitted,
    /// Selective acknowledgments.
    Sack(SackBlocks<'a>),
    /// Time stamps.
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The other side's clock, as last seen.
        echo: u32,
    },
    /// Any other option, or one of the above with a length it cannot have.
    Other {
        /// Kind number.
        kind: u8,
        /// What follows the length byte.
        data: &'a [u8],
    },
}

impl<'a> TcpOption<'a> {
    /// Reads a well-formed option, from its kind byte to its end.
    fn read(bytes: &'a [u8]) -> TcpOption<'a> {
        let (kind, data) = (bytes[0], &bytes[2..]);
        match (kind, data) {
            (OPTION_MSS, &[high, low]) => TcpOption::MaximumSegmentSize(u16::from_be_bytes([high, low])),
            (OPTION_WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
            (OPTION_SACK_PERMITTED, []) => TcpOption::SackPermitted,
            (OPTION_SACK, data) if data.len() % 8 == 0 => TcpOption::Sack(SackBlocks(data)),
            (OPTION_TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => TcpOption::Timestamps {
                value: u32::from_be_bytes([v0, v1, v2, v3]),
                echo: u32::from_be_bytes([e0, e1, e2, e3]),
            },
            _ => TcpOption::Other { kind, data },
        }
    }

    /// Bytes of the option.
    pub(crate) fn length(&self) -> usize {
        match self {
            TcpOption::NoOperation => 1,
            TcpOption::MaximumSegmentSize(_) => 4,
            TcpOption::WindowScale(_) => 3,
            TcpOption::SackPermitted => 2,
            TcpOption::Timestamps { .. } => 10,
            TcpOption::Sack(SackBlocks(data)) | TcpOption::Other { data, .. } => 2 + data.len(),
        }
    }

    /// Appends the option's bytes.
    pub(crate) fn write(&self, bytes: &mut Buffer) {
        match *self {
            TcpOption::NoOperation => bytes.extend_from_slice(&[OPTION_NOP]),
            TcpOption::MaximumSegmentSize(size) => {
                bytes.extend_from_slice(&[OPTION_MSS, 4]);
                bytes.extend_from_slice(&size.to_be_bytes());
            }
            TcpOption::WindowScale(shift) => bytes.extend_from_slice(&[OPTION_WINDOW_SCALE, 3, shift]),
            TcpOption::SackPermitted => bytes.extend_from_slice(&[OPTION_SACK_PERMITTED, 2]),
            TcpOption::Sack(SackBlocks(data)) => TcpOption::Other { kind: OPTION_SACK, data }.write(bytes),
            TcpOption::Timestamps { value, echo } => {
                bytes.extend_from_slice(&[OPTION_TIMESTAMPS, 10]);
                bytes.extend_from_slice(&value.to_be_bytes());
                bytes.extend_from_slice(&echo.to_be_bytes());
            }
            TcpOption::Other { kind, data } => {
                // Data that is too long for its length byte is too long for any header, which builders check.
                bytes.extend_from_slice(&[kind, (data.len() + 2) as u8]);
                bytes.extend_from_slice(data);
            }
        }
    }
}

/// The blocks of a SACK option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackBlocks<'a>(&'a [u8]);

impl<'a> SackBlocks<'a> {
    /// Blocks of 8 bytes each: left and right edge. `None` if `bytes` is no multiple of that.
    pub fn new(bytes: &'a [u8]) -> Option<SackBlocks<'a>> {
        bytes.len().is_multiple_of(8).then_some(SackBlocks(bytes))
    }

    /// Left edge (first byte held) and right edge (the byte behind) of each block.
    pub fn iter(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.0.chunks_exact(8).map(|block| {
            let edge = |at: usize| u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
            (edge(0), edge(4))
        })
    }
}

/// A TCP option as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawOption<'a> {
    /// Bytes from the start of the options to the kind byte.
    pub(crate) at: usize,
    /// The option with its kind and length bytes.
    pub(crate) bytes: &'a [u8],
}

/// Walks the options; padding is left out. Ends in front of a malformed option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawOptions<'a> {
    bytes: &'a [u8],
    at: usize,
    malformed: bool,
}

impl<'a> RawOptions<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> RawOptions<'a> {
        RawOptions { bytes, at: 0, malformed: false }
    }

    fn all_well_formed(mut self) -> bool {
        while self.next().is_some() {}
        !self.malformed
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = RawOption<'a>;

    fn next(&mut self) -> Option<RawOption<'a>> {
        while self.bytes.get(self.at) == Some(&OPTION_NOP) {
            self.at += 1;
        }
        let at = self.at;
        let kind = *self.bytes.get(at)?;
        if kind == OPTION_END {
            return None;
        }
        let length = self.bytes.get(at + 1).map_or(0, |length| usize::from(*length));
        match self.bytes.get(at..at + length) {
            Some(bytes) if length >= 2 => {
                self.at += length;
                Some(RawOption { at, bytes })
            }
            _ => {
                self.malformed = true;
                None
            }
        }
    }
}
