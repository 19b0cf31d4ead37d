//! What hardware has still to do on a frame, as the comment on it says: so that a recording replays as it was received.

use std::borrow::Cow;
use weftwire_core::format::Formats;
use weftwire_core::packet::Packet;
use weftwire_core::port::{Checksum, Frame, LinkType, Offload, Segmentation, SegmentationKind};
use weftwire_core::segment::segments;

const PARTIAL: &str = "checksum partial";
const VERIFIED: &str = "checksum verified";
const SEGMENTS: &str = "segments of ";

/// The names of what is in a super-frame.
const KINDS: [(SegmentationKind, &str); 5] = [
    (SegmentationKind::TcpIpv4 { ecn: false }, "tcp4"),
    (SegmentationKind::TcpIpv4 { ecn: true }, "tcp4 ecn"),
    (SegmentationKind::TcpIpv6 { ecn: false }, "tcp6"),
    (SegmentationKind::TcpIpv6 { ecn: true }, "tcp6 ecn"),
    (SegmentationKind::Udp, "udp"),
];

/// A frame as recordings keep it: nothing is left undone (checksums are complete, and a super-frame is one long
/// packet), and for [`restored`] the mark that says what was. One that can't be parsed stays as it is.
pub fn recorded<'a>(link: LinkType, frame: &Frame<'a>) -> (Cow<'a, [u8]>, Option<String>) {
    let Offload { segmentation, checksum } = frame.offload;
    let mut mark = match checksum {
        Checksum::Unverified => String::new(),
        Checksum::Partial => PARTIAL.to_owned(),
        Checksum::Verified => VERIFIED.to_owned(),
    };
    if let Some(Segmentation { size, kind }) = segmentation {
        let name = KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name);
        let between = if mark.is_empty() { "" } else { ", " };
        mark = format!("{mark}{between}{SEGMENTS}{size} {name}");
    }
    let mark = Some(mark).filter(|mark| !mark.is_empty());
    if segmentation.is_none() && checksum != Checksum::Partial {
        return (Cow::Borrowed(frame.bytes), mark);
    }
    let uncut = Frame { offload: Offload { segmentation: None, checksum }, ..*frame };
    let whole = segments(link, uncut).ok().and_then(|mut packets| packets.next());
    (whole.map_or(Cow::Borrowed(frame.bytes), |whole| Cow::Owned(whole.to_vec())), mark)
}

/// What was left undone on a frame with this comment; `None` if the comment is no mark.
pub fn marked(comment: &str) -> Option<Offload> {
    let mut offload = Offload::default();
    for part in comment.split(", ") {
        match part {
            PARTIAL => offload.checksum = Checksum::Partial,
            VERIFIED => offload.checksum = Checksum::Verified,
            _ => {
                let (size, name) = part.strip_prefix(SEGMENTS)?.split_once(' ')?;
                let (kind, _) = KINDS.into_iter().find(|(_, known)| *known == name)?;
                let size = size.parse().ok().filter(|size| *size > 0)?;
                offload.segmentation = Some(Segmentation { size, kind });
            }
        }
    }
    Some(offload)
}

/// A recorded frame as it was received: a checksum that hardware was to complete is only begun again. One that can't be
/// parsed stays as it is.
pub fn restored(link: LinkType, mut bytes: Vec<u8>, offload: Offload) -> Vec<u8> {
    if offload.checksum == Checksum::Partial
        && let Ok(mut packet) = Packet::parse(link, Frame { bytes: &bytes, offload }, &Formats::default())
    {
        packet.finish();
        let (begun, _) = packet.into_emitted(link);
        // What follows the packet is padding.
        if let Some(front) = bytes.get_mut(..begun.len()) {
            front.copy_from_slice(&begun);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_core::packet::checksum_is_partial;
    use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};

    fn frame(payload: usize) -> Vec<u8> {
        let front = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&Ipv4Fields::default());
        front.tcp(&TcpFields::default(), &[]).payload(&vec![7; payload]).finish().expect("a small frame")
    }

    #[test]
    fn every_mark_is_read_back_and_restores_the_frame() {
        let checksums = [Checksum::Unverified, Checksum::Partial, Checksum::Verified];
        let cuts = KINDS.map(|(kind, _)| Some(Segmentation { size: 1448, kind }));
        for checksum in checksums {
            for segmentation in cuts.into_iter().chain([None]) {
                let offload = Offload { segmentation, checksum };
                let received = restored(LinkType::Ethernet, frame(4_000), offload);
                let partial = checksum == Checksum::Partial;
                assert_eq!(checksum_is_partial(LinkType::Ethernet, &received), partial);
                let (bytes, mark) = recorded(LinkType::Ethernet, &Frame { bytes: &received, offload });
                assert_eq!(*bytes, frame(4_000), "whole and with all checksums");
                match mark {
                    Some(mark) => assert_eq!(marked(&mark), Some(offload), "{mark}"),
                    None => assert_eq!(offload, Offload::default()),
                }
                assert_eq!(restored(LinkType::Ethernet, bytes.into_owned(), offload), received);
            }
        }
    }

    #[test]
    fn other_comments_are_no_marks() {
        for text in ["", "sent", "checksum", "segments of 0 udp", "segments of 9 sctp", "checksum partial, lunch"] {
            assert_eq!(marked(text), None, "{text}");
        }
    }
}
