//! Cutting frames that stand for many segments, as a network card with TSO or USO does.

use crate::buffer::Buffer;
use crate::drop_reason::DropReason;
use crate::format::{FieldPlace, Formats, Header};
use crate::packet::Packet;
use crate::port::{Checksum, Frame, LinkType, Offload};
use crate::wire::tcp::TcpFlags;

const IDENTIFICATION: FieldPlace = FieldPlace { header: Header::Ipv4, option: None, offset: 32, width: 16 };
const SEQUENCE: FieldPlace = FieldPlace { header: Header::Tcp, option: None, offset: 32, width: 32 };
const FLAGS: FieldPlace = FieldPlace { header: Header::Tcp, option: None, offset: 104, width: 8 };

/// Cuts a frame into packets that any port takes: at most [`crate::Segmentation::size`] bytes behind the transport
/// header each, lengths and checksums right. An ordinary frame gives one packet, with its checksum completed.
///
/// Sequence number and IPv4 identification count up; FIN and PSH stay on the last segment only, CWR on the first
/// (RFC 3168, section 6.1.2).
///
/// # Errors
/// As of [`Packet::parse`]; checksums are not verified.
pub fn segments(link: LinkType, frame: Frame<'_>) -> Result<Segments, DropReason> {
    let offload = Offload { checksum: Checksum::Verified, ..frame.offload };
    let whole = Packet::parse(link, Frame { offload, ..frame }, &Formats::default())?;
    let length = whole.behind_transport().len();
    let size = whole.segmentation().map_or(length, |cut| usize::from(cut.size)).max(1);
    Ok(Segments { whole, link, size, next: 0, count: length.div_ceil(size).max(1) })
}

/// The packets of [`segments`], in order.
#[derive(Clone, Debug)]
pub struct Segments {
    whole: Packet,
    link: LinkType,
    size: usize,
    next: usize,
    count: usize,
}

impl Iterator for Segments {
    type Item = Buffer;

    fn next(&mut self) -> Option<Buffer> {
        if self.next == self.count {
            return None;
        }
        let start = self.next * self.size;
        let end = self.whole.behind_transport().len().min(start + self.size);
        let mut segment = self.whole.cut(start..end);
        if let Some(identification) = segment.get(IDENTIFICATION) {
            write(&mut segment, IDENTIFICATION, identification + self.next as u64);
        }
        if let (Some(sequence), Some(flags)) = (segment.get(SEQUENCE), segment.get(FLAGS)) {
            let mut flags = TcpFlags(flags as u8);
            if self.next > 0 {
                flags = flags.without(TcpFlags::CWR);
            }
            if self.next + 1 < self.count {
                flags = flags.without(TcpFlags::FIN.with(TcpFlags::PSH));
            }
            write(&mut segment, SEQUENCE, sequence + start as u64);
            write(&mut segment, FLAGS, flags.0.into());
        }
        segment.finish();
        self.next += 1;
        Some(segment.into_emitted(self.link).0)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count - self.next, Some(self.count - self.next))
    }
}

impl ExactSizeIterator for Segments {}

fn write(segment: &mut Packet, field: FieldPlace, value: u64) {
    segment.set(field, value).expect("this field was just read");
}
