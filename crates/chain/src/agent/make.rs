//! Segments of the agent's own.

use super::Agent;
use crate::segment::{OPTION_MESSAGE, TAG_EXPERIMENT, walk};
use crate::session::{Session, Way};
use crate::tuple::Tuple;
use std::net::IpAddr;
use weftwire_core::port::Offload;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};
use weftwire_core::{LinkType, Outbox, Port};

/// What such a segment says.
#[derive(Clone, Copy)]
pub(super) struct Made<'a> {
    pub tuple: Tuple,
    pub way: Way,
    pub flags: TcpFlags,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub payload: &'a [u8],
}

impl Agent {
    /// A segment of a session as its end would send it now, with a mark if it is a message.
    pub(super) fn made(&self, session: &Session, to: Port, made: Made<'_>) -> Option<Vec<u8>> {
        let [own, other] = if made.way == Way::Right { [0, 1] } else { [1, 0] };
        let mut options = Vec::new();
        if !made.payload.is_empty() {
            options.push(TcpOption::Other { kind: OPTION_MESSAGE, data: &TAG_EXPERIMENT });
        }
        if let (Some(value), Some(echo)) = (session.latest[own].stamp, session.latest[other].stamp) {
            options.push(TcpOption::Timestamps { value, echo });
        }
        self.packet(session, to, made, session.latest[own].window, &options)
    }

    /// The first segment of a new path in this direction, without a list or confirmation.
    pub(super) fn made_opening(&self, session: &Session, made: Made<'_>) -> Option<Vec<u8>> {
        let [own, other] = if made.way == Way::Right { [0, 1] } else { [1, 0] };
        let saved = &session.opening.options[own];
        let stamp = |stamp: Option<u32>| stamp.unwrap_or(0);
        let (value, echo) = (stamp(session.latest[own].stamp), stamp(session.latest[other].stamp));
        let options: Vec<TcpOption<'_>> = walk(saved)
            .map(|(at, length)| match saved[at] {
                8 if made.flags.contains(TcpFlags::ACK) => TcpOption::Timestamps { value, echo },
                8 => TcpOption::Timestamps { value, echo: 0 },
                kind => TcpOption::Other { kind, data: &saved[at + 2..at + length] },
            })
            .collect();
        // Windows of such segments are not scaled.
        let scale = scale_of(saved);
        let window = u32::from(session.latest[own].window) << scale;
        self.packet(session, crate::NETWORK, made, u16::try_from(window).unwrap_or(u16::MAX), &options)
    }

    fn packet(
        &self,
        session: &Session,
        to: Port,
        made: Made<'_>,
        window: u16,
        options: &[TcpOption<'_>],
    ) -> Option<Vec<u8>> {
        let builder = FrameBuilder::raw_ip();
        let builder = match (made.tuple.source.ip(), made.tuple.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                builder.ipv4(&Ipv4Fields { source, destination, ..Ipv4Fields::default() })
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                builder.ipv6(&Ipv6Fields { source, destination, ..Ipv6Fields::default() })
            }
            _ => return None,
        };
        let fields = TcpFields {
            source_port: made.tuple.source.port(),
            destination_port: made.tuple.destination.port(),
            sequence: made.sequence,
            acknowledgment: made.acknowledgment,
            flags: made.flags,
            window,
            ..TcpFields::default()
        };
        let packet = builder.tcp(&fields, options).payload(made.payload).finish().ok()?;
        if self.ports.link(to) != Some(LinkType::Ethernet) {
            return Some(packet);
        }
        let mut frame = session.opening.link.clone();
        if to == crate::HOST {
            // What the host sends comes from there.
            let (to, from) = frame.get_mut(..12)?.split_at_mut(6);
            to.swap_with_slice(from);
        } else if let Some(gateway) = self.config.gateway {
            frame.get_mut(..6)?.copy_from_slice(&gateway.0);
        }
        frame.extend_from_slice(&packet);
        Some(frame)
    }

    /// Sends a segment of the agent's own.
    pub(super) fn emit(&mut self, to: Port, frame: Option<Vec<u8>>, out: &mut Outbox) {
        let Some(frame) = frame else { return };
        self.frames[1] += 1;
        out.send(self.now, to, &frame, Offload::default());
    }
}

/// What windows are shifted by that an end with these options of its SYN tells.
pub(super) fn scale_of(options: &[u8]) -> u8 {
    walk(options).find(|(at, length)| options[*at] == 3 && *length == 3).map_or(0, |(at, _)| options[at + 2].min(14))
}
