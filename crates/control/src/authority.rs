//! Requests whose `:authority` is an escaped path, as gRPC's C core and what is built on it (Python, Ruby, C++, PHP) send it to
//! Unix sockets: `%2Frun%2Fweftwire%2Fcontroller.grpc`. RFC 9113, 8.3.1 and RFC 3986, 3.2.2 allow that, the HTTP library here
//! refuses it. Nobody looks at an authority on a Unix socket, so `%` becomes `-` on the way in.
//!
//! Both characters have 6 bits in HPACK's code (RFC 7541, appendix B), so no length changes, and nothing has to be encoded anew.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client says before its first frame (RFC 9113, 3.4).
const PREFACE: usize = 24;
/// A frame's head (RFC 9113, 4.1).
const HEAD: usize = 9;
/// A frame of headers, and its flags (RFC 9113, 6.2).
const HEADERS: u8 = 1;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
/// Frames of headers that are longer are left as they are: no client sends them, no server takes them.
const MOST_HEADERS: usize = 16 << 10;
/// The entry of `:authority` in HPACK's static table (RFC 7541, appendix A).
const AUTHORITY: u64 = 1;
/// Its name as some write it all the same, plain and in Huffman's code.
const NAME: &[u8] = b":authority";
const NAME_CODED: &[u8] = &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f];

/// A connection whose clients may name escaped paths.
pub(crate) struct Unescaped<C> {
    connection: C,
    frames: Frames,
    /// What has been read and not yet given on, from `given` on.
    bytes: Vec<u8>,
    given: usize,
}

/// Where in the stream of frames the reader is.
#[derive(Debug)]
enum Frames {
    /// So many bytes are of no interest.
    Skip(usize),
    /// A head has begun.
    Head(Vec<u8>),
    /// A frame of headers has begun; its payload has this length.
    Headers { flags: u8, length: usize, payload: Vec<u8> },
}

impl<C> Unescaped<C> {
    pub(crate) fn new(connection: C) -> Unescaped<C> {
        Unescaped { connection, frames: Frames::Skip(PREFACE), bytes: Vec::new(), given: 0 }
    }
}

impl Frames {
    /// Takes what has come and appends what may go on.
    fn pass(&mut self, mut input: &[u8], output: &mut Vec<u8>) {
        while !input.is_empty() {
            match self {
                Frames::Skip(0) => *self = Frames::Head(Vec::with_capacity(HEAD)),
                Frames::Skip(left) => {
                    let (skipped, rest) = input.split_at(input.len().min(*left));
                    output.extend_from_slice(skipped);
                    *left -= skipped.len();
                    input = rest;
                }
                Frames::Head(head) => {
                    let (more, rest) = input.split_at(input.len().min(HEAD - head.len()));
                    head.extend_from_slice(more);
                    input = rest;
                    if let [a, b, c, kind, flags, ..] = head[..]
                        && head.len() == HEAD
                    {
                        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                        output.extend_from_slice(head);
                        *self = match kind == HEADERS && (1..=MOST_HEADERS).contains(&length) {
                            true => Frames::Headers { flags, length, payload: Vec::with_capacity(length) },
                            false => Frames::Skip(length),
                        };
                    }
                }
                Frames::Headers { flags, length, payload } => {
                    let (more, rest) = input.split_at(input.len().min(*length - payload.len()));
                    payload.extend_from_slice(more);
                    input = rest;
                    if payload.len() == *length {
                        let block =
                            if *flags & PADDED == 0 { 0 } else { 1 } + if *flags & PRIORITY == 0 { 0 } else { 5 };
                        if let Some(block) = payload.get_mut(block..) {
                            unescape(block);
                        }
                        output.append(payload);
                        *self = Frames::Skip(0);
                    }
                }
            }
        }
    }
}

/// Replaces `%` in a literal `:authority` of a block of headers. Blocks that make no sense stay as they are.
fn unescape(block: &mut [u8]) -> Option<()> {
    let mut at = 0;
    while let Some(first) = block.get(at).copied() {
        // RFC 7541, 6: which representation, and how many bits its number has.
        let (bits, has_value) = match first {
            0x80.. => (7, false),
            0x40.. => (6, true),
            0x20.. => (5, false),
            _ => (4, true),
        };
        let name = number(block, &mut at, bits)?;
        if !has_value {
            continue;
        }
        let is_authority = match name {
            0 => {
                let (is_coded, place) = text(block, &mut at)?;
                block.get(place)? == if is_coded { NAME_CODED } else { NAME }
            }
            name => name == AUTHORITY,
        };
        let (is_coded, place) = text(block, &mut at)?;
        if is_authority {
            let value = block.get_mut(place)?;
            if is_coded {
                unescape_coded(value);
            } else {
                value.iter_mut().filter(|byte| **byte == b'%').for_each(|byte| *byte = b'-');
            }
            // There is one.
            return Some(());
        }
    }
    None
}

/// A number (RFC 7541, 5.1).
fn number(block: &[u8], at: &mut usize, bits: u32) -> Option<u64> {
    let mask = (1_u8 << bits) - 1;
    let first = block.get(*at)? & mask;
    *at += 1;
    let mut value = u64::from(first);
    if first == mask {
        for shift in (0..28).step_by(7) {
            let byte = *block.get(*at)?;
            *at += 1;
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        return None;
    }
    Some(value)
}

/// A text (RFC 7541, 5.2): whether it is in Huffman's code, and where it is.
fn text(block: &[u8], at: &mut usize) -> Option<(bool, std::ops::Range<usize>)> {
    let is_coded = block.get(*at)? & 0x80 != 0;
    let length = usize::try_from(number(block, at, 7)?).ok()?;
    let start = *at;
    *at = start.checked_add(length).filter(|end| *end <= block.len())?;
    Some((is_coded, start..*at))
}

/// `%` is 010101, `-` is 010110. The characters of escaped paths have codes of 5 to 8 bits, whose first 5 say how many
/// (RFC 7541, appendix B); another character, or the padding, ends the search.
fn unescape_coded(value: &mut [u8]) {
    let (mut at, end) = (0, value.len() * 8);
    while at + 6 <= end {
        let bits =
            |count: usize| (at..end.min(at + count)).fold(0, |code, at| code << 1 | value[at / 8] >> (7 - at % 8) & 1);
        let length = match bits(5) {
            0..=9 => 5,
            10..=22 => 6,
            23..=30 => 7,
            _ if bits(8) < 0b1111_1110 => 8,
            _ => return,
        };
        if bits(6) == 0b01_0101 {
            value[(at + 4) / 8] |= 0x80 >> ((at + 4) % 8);
            value[(at + 5) / 8] &= !(0x80 >> ((at + 5) % 8));
        }
        at += length;
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Unescaped<C> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Unescaped { connection, frames, bytes, given } = self.get_mut();
        while *given == bytes.len() {
            bytes.clear();
            *given = 0;
            let mut storage = [0; 8 << 10];
            let mut read = ReadBuf::new(&mut storage);
            ready!(Pin::new(&mut *connection).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            frames.pass(read.filled(), bytes);
        }
        let there = &bytes[*given..];
        let there = &there[..there.len().min(buffer.remaining())];
        buffer.put_slice(there);
        *given += there.len();
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Unescaped<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: &str = "%2Frun%2Fweftwire%2Fcontroller.grpc";
    const TO: &str = "-2Frun-2Fweftwire-2Fcontroller.grpc";

    /// The codes of the characters of both, with their lengths (RFC 7541, appendix B).
    const CODES: [(char, u32, u32); 14] = [
        ('%', 0x15, 6),
        ('-', 0x16, 6),
        ('.', 0x17, 6),
        ('2', 0x2, 5),
        ('F', 0x61, 7),
        ('c', 0x4, 5),
        ('e', 0x5, 5),
        ('f', 0x25, 6),
        ('g', 0x26, 6),
        ('i', 0x6, 5),
        ('l', 0x28, 6),
        ('n', 0x2a, 6),
        ('o', 0x7, 5),
        ('p', 0x2b, 6),
    ];
    const MORE: [(char, u32, u32); 6] =
        [('r', 0x2c, 6), ('t', 0x9, 5), ('u', 0x2d, 6), ('w', 0x78, 7), ('z', 0x7b, 7), ('Z', 0xfd, 8)];

    fn coded(text: &str) -> Vec<u8> {
        let code = |wanted| CODES.iter().chain(&MORE).find(|(character, ..)| *character == wanted).unwrap();
        let mut bits: String = text
            .chars()
            .map(code)
            .map(|(_, code, length)| format!("{code:0width$b}", width = *length as usize))
            .collect();
        // The padding is of ones.
        bits.extend(std::iter::repeat_n('1', (8 - bits.len() % 8) % 8));
        bits.as_bytes()
            .chunks(8)
            .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
            .collect()
    }

    fn literal(first: u8, text: &[u8], flag: u8) -> Vec<u8> {
        assert!(text.len() < 127);
        [&[first, flag | text.len() as u8], text].concat()
    }

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        [&[a, b, c, kind, flags, 0, 0, 0, 1], payload].concat()
    }

    /// However the bytes come, they go on changed as expected.
    fn passes(input: &[u8], expected: &[u8]) {
        for size in [1, 2, 7, 30, input.len()] {
            let (mut frames, mut output) = (Frames::Skip(PREFACE), Vec::new());
            input.chunks(size).for_each(|part| frames.pass(part, &mut output));
            assert_eq!(output, expected, "in parts of {size}");
        }
    }

    #[test]
    fn the_authority_loses_its_escapes_and_nothing_else_changes() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let stream = |authority: Vec<u8>| {
            // A method, a size of the table, a path, then the authority, then a value with the same characters.
            let start = [vec![0x83, 0x3f, 0xe1, 0x1f], literal(0x44, FROM.as_bytes(), 0)].concat();
            let block = [start, authority, literal(0x42, FROM.as_bytes(), 0)].concat();
            let padded = [&[2, 0, 0, 0, 0, 9][..], &block, &[0, 0]].concat();
            [
                preface.to_vec(),
                frame(4, 0, &[]),
                frame(HEADERS, 4, &block),
                frame(0, 0, FROM.as_bytes()),
                frame(HEADERS, 4 | PADDED | PRIORITY, &padded),
            ]
            .concat()
        };
        for first in [0x41, 0x01, 0x11] {
            passes(&stream(literal(first, FROM.as_bytes(), 0)), &stream(literal(first, TO.as_bytes(), 0)));
            passes(&stream(literal(first, &coded(FROM), 0x80)), &stream(literal(first, &coded(TO), 0x80)));
        }
        for (flag, name) in [(0, NAME), (0x80, NAME_CODED)] {
            let named =
                |value: &str| [literal(0x40, name, flag), literal(0, value.as_bytes(), 0)[1..].to_vec()].concat();
            passes(&stream(named(FROM)), &stream(named(TO)));
        }
        let same = stream(literal(0x41, b"localhost", 0));
        passes(&same, &same);
        let (before, after) = (coded("wZ%z%"), coded("wZ-z-"));
        passes(&stream(literal(0x41, &before, 0x80)), &stream(literal(0x41, &after, 0x80)));
    }

    #[test]
    fn nonsense_passes_as_it_is() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        for block in [
            &[0x41_u8][..],
            &[0x41, 0xff],
            &[0x41, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x40],
            &[0x7f],
            &[0x41, 9, b'%'],
        ] {
            bytes.extend(frame(HEADERS, 4, block));
        }
        bytes.extend(frame(HEADERS, PRIORITY, &[0x41]));
        passes(&bytes, &bytes);
    }
}
