//! Data of sessions whose path changes, or has changed: numbers of the host on one side, those of a path on the other.

use super::make::Made;
use super::{Agent, HOST, NETWORK, Verdict};
use crate::paths::{Arrived, Piece, Side, Stage};
use crate::rewrite::{map_blocks, narrow, part, renumber};
use crate::segment::{Found, Segment, find};
use crate::session::{Place, RIGHT, Way};
use crate::table::Index;
use crate::tuple::Tuple;
use weftwire_core::buffer::Buffer;
use weftwire_core::port::Offload;
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{LinkType, Outbox};

impl Agent {
    /// The headers of what leaves by a path of a face.
    pub(super) fn tuple_of(&self, index: Index, face: usize, side: Side) -> Option<Tuple> {
        let session = self.table.get(index)?;
        let path = match side {
            Side::New => session.new_path(face)?,
            Side::Old if face == RIGHT => session.right.as_ref()?,
            Side::Old => session.left.as_ref()?,
        };
        Some(if face == RIGHT { path.tuple } else { path.tuple.reversed() })
    }

    /// A segment of the host, on a face with numbers of its own.
    pub(super) fn leave(
        &mut self,
        (index, place): (Index, Place),
        link: LinkType,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        out: &mut Outbox,
    ) -> Verdict {
        let face = place.face();
        self.note(index, place, frame, segment);
        let mut leaving = None;
        let is_reset = segment.flags.contains(TcpFlags::RST);
        self.with_face(index, face, |face| {
            leaving = Some(if is_reset {
                face.anchor.reset(segment.sequence, segment.acknowledgment)
            } else {
                face.anchor.leave(segment.sequence, segment.length(), segment.acknowledgment)
            });
        });
        let Some(leaving) = leaving else { return Verdict::Drop("no_path") };
        if let Some(answer) = leaving.answer {
            self.acknowledge(index, face, segment, answer, out);
            self.proceed(index, face, out);
            return Verdict::Done;
        }
        let pieces: Vec<Piece> = leaving.pieces.into_iter().flatten().collect();
        let mut verdict = Verdict::Done;
        for (at, piece) in pieces.iter().enumerate() {
            let Some(to) = self.tuple_of(index, face, piece.side) else { continue };
            let is_whole = is_reset || piece.skipped == 0 && piece.length == segment.length();
            if is_whole && at + 1 == pieces.len() {
                self.fit(index, face, frame, segment, *piece, offload.checksum);
                segment.redirect(frame, to, offload.checksum);
                verdict = Verdict::Send(offload);
                break;
            }
            let parts = if is_whole {
                Some((frame.to_vec(), offload))
            } else {
                part(frame, segment, offload, piece.skipped, piece.length)
            };
            let Some((mut bytes, offload)) = parts else {
                verdict = Verdict::Drop("bad_checksum");
                continue;
            };
            let Ok(Found::Segment(found)) = find(link, &bytes) else { continue };
            self.fit(index, face, &mut bytes, &found, *piece, offload.checksum);
            found.redirect(&mut bytes, to, offload.checksum);
            self.send_frame(NETWORK, link, out.buffer_with(&bytes), offload, out);
        }
        self.proceed(index, face, out);
        verdict
    }

    /// Gives a frame the numbers of a piece.
    fn fit(
        &self,
        index: Index,
        face: usize,
        frame: &mut [u8],
        segment: &Segment,
        piece: Piece,
        checksum: weftwire_core::port::Checksum,
    ) {
        let Some(anchor) =
            self.table.get(index).and_then(|session| session.faces[face].as_ref()).map(|face| &face.anchor)
        else {
            return;
        };
        map_blocks(frame, segment, checksum, |block| anchor.block_to(piece.side, block));
        renumber(frame, segment, piece.sequence, piece.acknowledgment, checksum);
    }

    /// A segment has come by a path of a face with numbers of its own.
    pub(super) fn arrive_by(
        &mut self,
        (index, place): (Index, Place),
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        out: &mut Outbox,
    ) -> Verdict {
        let face = place.face();
        let side = place.side();
        let Some(to) = self.table.get(index).and_then(|session| session.onward(place)) else {
            return Verdict::Drop("no_path");
        };
        let is_reset = segment.flags.contains(TcpFlags::RST);
        let mut found = None;
        self.with_face(index, face, |face| {
            let anchor = &mut face.anchor;
            let arrived = Arrived {
                side,
                sequence: segment.sequence,
                length: segment.length(),
                acknowledgment: segment.acknowledgment,
                beta: None,
                knows: false,
            };
            let shift = anchor.shift(side);
            let own = segment.acknowledgment.wrapping_add(shift.leaving);
            let arriving = if is_reset { anchor.arrive_reset(arrived) } else { anchor.arrive(arrived) };
            let asks = arriving.handed.is_none() && side == Side::New && anchor.stage() != Stage::One;
            found = Some((arriving, own, asks, face.scale, face.anchor.clone()));
        });
        let Some((arriving, own, asks, scale, anchor)) = found else { return Verdict::Drop("no_path") };
        if let Some(piece) = arriving.reply {
            self.send_piece(index, face, piece, out);
        }
        if asks {
            self.tell(index, face, None, false, out);
        }
        let Some((sequence, acknowledgment)) = arriving.handed else {
            self.proceed(index, face, out);
            return if asks { Verdict::Drop("before_beta") } else { Verdict::Done };
        };
        map_blocks(frame, segment, offload.checksum, |block| anchor.block_from(side, block, segment.acknowledgment));
        let raised = acknowledgment.wrapping_sub(own);
        if raised > 0 && !is_reset {
            let scale = scale[usize::from(place.way() == Way::Left)];
            narrow(frame, segment, raised, scale, offload.checksum);
        }
        renumber(frame, segment, sequence, acknowledgment, offload.checksum);
        segment.redirect(frame, to, offload.checksum);
        let seen = Segment { sequence, acknowledgment, ..*segment };
        self.note(index, place, frame, &seen);
        self.proceed(index, face, out);
        Verdict::Send(offload)
    }

    /// Tells the host that the other one has all of a segment.
    fn acknowledge(&mut self, index: Index, face: usize, segment: &Segment, acknowledgment: u32, out: &mut Outbox) {
        let Some(session) = self.table.get(index) else { return };
        let (tuple, way) =
            if face == RIGHT { (session.leaving.reversed(), Way::Left) } else { (session.entering, Way::Right) };
        let made =
            Made { tuple, way, flags: TcpFlags::ACK, sequence: segment.acknowledgment, acknowledgment, payload: &[] };
        let frame = self.made(session, HOST, made);
        self.emit(HOST, frame, out);
    }

    /// Sends a segment without data on a path.
    pub(super) fn send_piece(&mut self, index: Index, face: usize, piece: Piece, out: &mut Outbox) {
        let Some(tuple) = self.tuple_of(index, face, piece.side) else { return };
        let Some(session) = self.table.get(index) else { return };
        let made = Made {
            tuple,
            way: if face == RIGHT { Way::Right } else { Way::Left },
            flags: TcpFlags::ACK,
            sequence: piece.sequence,
            acknowledgment: piece.acknowledgment,
            payload: &[],
        };
        let frame = self.made(session, NETWORK, made);
        self.emit(NETWORK, frame, out);
    }
}
