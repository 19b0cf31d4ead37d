//! `answerDNS(address)`: answers queries for a name's address (RFC 1035), as its server of authority would.

use super::frame::{HOPS, is_group};
use super::{Action, OTHER_ARGUMENTS, Passing, Registry, Verdict, signature};
use std::net::Ipv4Addr;
use weftwire_core::{Buffer, DropReason, FieldPlace, Formats, Frame, Packet};
use weftwire_subscribe::formats::ArgumentKind;
use weftwire_subscribe::rules::Argument;

const HEADER_LENGTH: usize = 12;
/// Longest name in bytes, its lengths and the root's included.
const LONGEST_NAME: usize = 255;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
/// The options of EDNS (RFC 6891).
const TYPE_OPT: u16 = 41;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;

const RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const AUTHORITATIVE: u16 = 0x0400;
const RECURSION_DESIRED: u16 = 0x0100;
const CHECKING_DISABLED: u16 = 0x0010;
/// Of the flags in an OPT record: the asker understands signatures.
const DNSSEC_OK: u16 = 0x8000;

/// Seconds that an answer may be kept: short, as rules change.
const LIFETIME: u32 = 60;
/// Longest datagram taken, told to whoever uses EDNS: what passes everywhere unfragmented.
const LONGEST_DATAGRAM: u16 = 1232;

/// `answerDNS(address)`
struct AnswerDns {
    address: Ipv4Addr,
    formats: Formats,
    /// Fields of the packet.
    udp: Option<FieldPlace>,
    hops: [Option<FieldPlace>; 2],
    packet: Packet,
    answer: Vec<u8>,
    bytes: Buffer,
}

pub(super) fn register(registry: &mut Registry) {
    registry.register(signature("answerDNS", &[ArgumentKind::Ipv4]), |arguments| {
        let [Argument::Ipv4(address)] = arguments else { return Err(OTHER_ARGUMENTS) };
        let formats = Formats::default();
        Ok(Box::new(AnswerDns {
            address: *address,
            udp: formats.field("udp", "source_port"),
            hops: [formats.field("ipv4", "ttl"), formats.field("ipv6", "hop_limit")],
            formats,
            packet: Packet::default(),
            answer: Vec::new(),
            bytes: Buffer::default(),
        }))
    });
}

impl Action for AnswerDns {
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
        match self.respond(passing) {
            Ok(()) => Verdict::Done,
            Err(reason) => {
                passing.count(reason.name());
                Verdict::Continue
            }
        }
    }
}

impl AnswerDns {
    fn respond(&mut self, passing: &mut Passing<'_>) -> Result<(), Unanswered> {
        // The checksum was verified when the message was found, or is as the offload says.
        let frame = Frame { bytes: passing.frame, offload: passing.offload };
        self.packet.renew(passing.link, frame, &self.formats).map_err(|_| Unanswered::NoQuery)?;
        let is_udp = self.udp.is_some_and(|place| self.packet.get(place).is_some());
        if !is_udp || is_group(passing.link, passing.frame) {
            return Err(Unanswered::NoQuery);
        }
        let query = Query::parse(self.packet.payload())?;
        query.answer(self.address, &mut self.answer)?;
        self.turn_round().map_err(|_| Unanswered::NoQuery)?;
        let offload = self.packet.emit(passing.link, &mut self.bytes);
        passing.answer(&self.bytes, offload);
        Ok(())
    }

    /// Makes the answer's packet of the query's.
    fn turn_round(&mut self) -> Result<(), DropReason> {
        self.packet.reverse();
        self.packet.resize_payload(0)?;
        self.packet.append_payload(&self.answer)?;
        for place in self.hops.into_iter().flatten() {
            // A packet has one of the two.
            let _ = self.packet.set(place, HOPS.into());
        }
        self.packet.finish();
        Ok(())
    }
}

/// Why a query is left to whoever else the rules send it to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unanswered {
    /// It is no DNS query over UDP to one host.
    NoQuery,
    /// It is cut short, has bytes behind its end, or more than one question.
    Malformed,
    /// It asks for something else than addresses, of another class, or in a later version of EDNS.
    Other,
}

impl Unanswered {
    fn name(self) -> &'static str {
        match self {
            Unanswered::NoQuery => "dns: not a query",
            Unanswered::Malformed => "dns: malformed",
            Unanswered::Other => "dns: asks for something else",
        }
    }
}

/// A query with one question.
struct Query<'a> {
    id: u16,
    flags: u16,
    /// The question as it stands: name, type, class.
    question: &'a [u8],
    kind: u16,
    class: u16,
    /// The version and flags of its OPT record.
    edns: Option<(u8, u16)>,
}

impl Query<'_> {
    fn parse(bytes: &[u8]) -> Result<Query<'_>, Unanswered> {
        let Some((header, behind)) = bytes.split_first_chunk::<HEADER_LENGTH>() else {
            return Err(Unanswered::Malformed);
        };
        let word = |index: usize| u16::from_be_bytes([header[2 * index], header[2 * index + 1]]);
        let (id, flags) = (word(0), word(1));
        if flags & (RESPONSE | OPCODE) != 0 {
            return Err(Unanswered::NoQuery);
        }
        if (word(2), word(3), word(4)) != (1, 0, 0) || word(5) > 1 {
            return Err(Unanswered::Malformed);
        }
        let name = name_length(behind).ok_or(Unanswered::Malformed)?;
        let Some((question, rest)) = behind.split_at_checked(name + 4) else { return Err(Unanswered::Malformed) };
        let [.., kind_high, kind_low, class_high, class_low] = *question else { return Err(Unanswered::Malformed) };
        let edns = if word(5) == 1 { Some(options(rest)?) } else { None };
        if edns.is_none() && !rest.is_empty() {
            return Err(Unanswered::Malformed);
        }
        let (kind, class) = (u16::from_be_bytes([kind_high, kind_low]), u16::from_be_bytes([class_high, class_low]));
        Ok(Query { id, flags, question, kind, class, edns })
    }

    /// Writes the response: the address, or that there is none of this type.
    fn answer(&self, address: Ipv4Addr, out: &mut Vec<u8>) -> Result<(), Unanswered> {
        if self.class != CLASS_IN || self.edns.is_some_and(|(version, _)| version > 0) {
            return Err(Unanswered::Other);
        }
        let answers = match self.kind {
            TYPE_A | TYPE_ANY => 1,
            TYPE_AAAA => 0,
            _ => return Err(Unanswered::Other),
        };
        let flags = RESPONSE | AUTHORITATIVE | self.flags & (RECURSION_DESIRED | CHECKING_DISABLED);
        out.clear();
        for word in [self.id, flags, 1, answers, 0, self.edns.is_some().into()] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(self.question);
        if answers == 1 {
            // The name is the question's: a pointer to it (RFC 1035, section 4.1.4).
            out.extend_from_slice(&(0xc000 | HEADER_LENGTH as u16).to_be_bytes());
            out.extend_from_slice(&TYPE_A.to_be_bytes());
            out.extend_from_slice(&CLASS_IN.to_be_bytes());
            out.extend_from_slice(&LIFETIME.to_be_bytes());
            out.extend_from_slice(&4u16.to_be_bytes());
            out.extend_from_slice(&address.octets());
        }
        if let Some((_, flags)) = self.edns {
            // The root's name; rcode and version in the upper half of the lifetime are 0; no options.
            out.push(0);
            out.extend_from_slice(&TYPE_OPT.to_be_bytes());
            out.extend_from_slice(&LONGEST_DATAGRAM.to_be_bytes());
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&(flags & DNSSEC_OK).to_be_bytes());
            out.extend_from_slice(&[0, 0]);
        }
        Ok(())
    }
}

/// Bytes of the name at the start, which has no pointers: there is nothing yet to point to.
fn name_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1 + length;
        if at > LONGEST_NAME || length > 63 {
            return None;
        }
        if length == 0 {
            return Some(at);
        }
    }
}

/// Version and flags of the OPT record that is all there is.
fn options(record: &[u8]) -> Result<(u8, u16), Unanswered> {
    let [0, kind_high, kind_low, _, _, _, version, flags_high, flags_low, length_high, length_low, data @ ..] = record
    else {
        return Err(Unanswered::Malformed);
    };
    if u16::from_be_bytes([*kind_high, *kind_low]) != TYPE_OPT {
        return Err(Unanswered::Other);
    }
    if data.len() != usize::from(u16::from_be_bytes([*length_high, *length_low])) {
        return Err(Unanswered::Malformed);
    }
    Ok((*version, u16::from_be_bytes([*flags_high, *flags_low])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(kind: u16, edns: bool) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, edns.into()];
        bytes.extend_from_slice(b"\x03wWw\x07example\x03com\x00");
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&[0, 1]);
        if edns {
            // With a cookie, as dig sends it.
            bytes.extend_from_slice(b"\0\0\x29\x04\xd0\0\0\x80\0\0\x0c\0\x0a\0\x0812345678");
        }
        bytes
    }

    fn answer(bytes: &[u8]) -> Result<Vec<u8>, Unanswered> {
        let mut out = Vec::new();
        Query::parse(bytes)?.answer([10, 0, 0, 105].into(), &mut out)?;
        Ok(out)
    }

    #[test]
    fn an_address_is_answered_as_rfc_1035_writes_it() {
        let mut wanted = vec![0x12, 0x34, 0x85, 0x00, 0, 1, 0, 1, 0, 0, 0, 0];
        wanted.extend_from_slice(&query(TYPE_A, false)[12..]);
        wanted.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 105]);
        assert_eq!(answer(&query(TYPE_A, false)), Ok(wanted.clone()));
        // With EDNS: an option record more, DO as in the query.
        wanted[11] = 1;
        wanted.extend_from_slice(&[0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0]);
        assert_eq!(answer(&query(TYPE_A, true)), Ok(wanted));
        let none = answer(&query(TYPE_AAAA, false)).expect("an empty answer");
        assert_eq!((none[3], none[7], none.len()), (0, 0, query(TYPE_AAAA, false).len()));
    }

    #[test]
    fn what_is_no_plain_query_is_left_alone() {
        let changed = |at: usize, value: u8| {
            let mut bytes = query(TYPE_A, true);
            bytes[at] = value;
            answer(&bytes).unwrap_err()
        };
        assert_eq!(changed(2, 0x81), Unanswered::NoQuery, "a response");
        assert_eq!(changed(2, 0x29), Unanswered::NoQuery, "an update");
        assert_eq!(changed(5, 2), Unanswered::Malformed, "two questions");
        assert_eq!(changed(7, 1), Unanswered::Malformed, "an answer in the query");
        assert_eq!(changed(12, 0xc0), Unanswered::Malformed, "a pointer");
        assert_eq!(changed(12, 4), Unanswered::Malformed, "labels that run into each other");
        assert_eq!(changed(32, 3), Unanswered::Other, "class CHAOS");
        assert_eq!(changed(39, 1), Unanswered::Other, "EDNS version 1");
        assert_eq!(answer(&query(15, false)), Err(Unanswered::Other), "MX");
        let mut longer = query(TYPE_A, false);
        longer.push(0);
        assert_eq!(answer(&longer), Err(Unanswered::Malformed));
    }

    proptest! {
        #[test]
        fn cut_short_is_malformed(edns: bool, cut: prop::sample::Index) {
            let bytes = query(TYPE_A, edns);
            prop_assert_eq!(answer(&bytes[..cut.index(bytes.len())]), Err(Unanswered::Malformed));
        }

        #[test]
        fn nothing_makes_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), plain: bool) {
            if plain && bytes.len() >= 12 {
                bytes[2..12].copy_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
            }
            let _ = answer(&bytes);
        }
    }
}
