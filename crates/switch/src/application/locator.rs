//! Identifier-locator addressing: the upper 64 bits of an IPv6 address say where an identifier, the lower ones, is now.

use super::frame::{Address, Network, network, set_locator};
use super::{Action, OTHER_ARGUMENTS, Passing, Registry, Verdict, signature};
use weftwire_subscribe::formats::ArgumentKind;
use weftwire_subscribe::rules::Argument;

/// `setLocator(prefix)`, `setSourceLocator(prefix)`: rewrites the upper 64 bits of the destination or source.
struct SetLocator {
    which: Address,
    locator: u64,
}

pub(super) fn register(registry: &mut Registry) {
    for (name, which) in [("setLocator", Address::Destination), ("setSourceLocator", Address::Source)] {
        registry.register(signature(name, &[ArgumentKind::Ipv6]), move |arguments| {
            let [Argument::Ipv6(prefix)] = arguments else { return Err(OTHER_ARGUMENTS) };
            let bits = prefix.to_bits();
            if bits as u64 != 0 {
                return Err("a locator is the upper 64 bits; make the lower ones 0");
            }
            Ok(Box::new(SetLocator { which, locator: (bits >> 64) as u64 }))
        });
    }
}

impl Action for SetLocator {
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
        match network(passing.link, passing.frame) {
            Some((start, Network::Ipv6))
                if set_locator(passing.frame, start, passing.offload, self.which, self.locator) => {}
            _ => passing.count("locator: no IPv6"),
        }
        Verdict::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::frame::{icmpv6_checksum, put};
    use proptest::prelude::*;
    use weftwire_core::port::Checksum;
    use weftwire_core::wire::builder::{FrameBuilder, Ipv6Fields, TcpFields};
    use weftwire_core::wire::ipv6::Ipv6;
    use weftwire_core::{Formats, Frame, LinkType, Offload, Packet};

    fn packet(kind: u8, source: u128, destination: u128, data: &[u8]) -> Vec<u8> {
        let fields = Ipv6Fields { source: source.into(), destination: destination.into(), ..Ipv6Fields::default() };
        let ip = FrameBuilder::raw_ip().ipv6(&fields);
        let built = match kind {
            0 => ip.tcp(&TcpFields { source_port: 1, destination_port: 2, ..TcpFields::default() }, &[]).payload(data),
            1 => ip.udp(1, 2).payload(data),
            _ => {
                let mut message = [&[128, 0, 0, 0], data].concat();
                let addresses = [source.to_be_bytes(), destination.to_be_bytes()].concat();
                let sum = icmpv6_checksum(&addresses, &message);
                put(&mut message, 2, sum);
                ip.protocol(58).payload(&message)
            }
        };
        built.finish().expect("short")
    }

    proptest! {
        /// There and back gives the packet as it was, and on the way its checksum is that of a packet made so.
        #[test]
        fn there_and_back(
            kind in 0..3u8, source: u128, destination: u128, locator: u64, of_source: bool,
            data in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let (which, old) = if of_source { (Address::Source, source) } else { (Address::Destination, destination) };
            let moved = old as u64 as u128 | u128::from(locator) << 64;
            let before = packet(kind, source, destination, &data);
            let there = if of_source { packet(kind, moved, destination, &data) } else { packet(kind, source, moved, &data) };
            let mut frame = before.clone();
            prop_assert!(set_locator(&mut frame, 0, Offload::default(), which, locator));
            prop_assert_eq!(&frame, &there);
            prop_assert!(set_locator(&mut frame, 0, Offload::default(), which, (old >> 64) as u64));
            prop_assert_eq!(&frame, &before);
        }

        /// A checksum that hardware is to complete stays one that it completes to the right one.
        #[test]
        fn partial_checksums_stay_partial(destination: u128, locator: u64, tcp: bool) {
            let kind = u8::from(!tcp);
            let partial = Offload { checksum: Checksum::Partial, ..Offload::default() };
            let made = |destination| {
                let frame = packet(kind, 7, destination, b"some data");
                let mut packet =
                    Packet::parse(LinkType::Ip, Frame { bytes: &frame, offload: partial }, &Formats::default()).unwrap();
                packet.finish();
                packet.into_emitted(LinkType::Ip).0.to_vec()
            };
            let mut frame = made(destination);
            prop_assert!(set_locator(&mut frame, 0, partial, Address::Destination, locator));
            prop_assert_eq!(frame, made(destination as u64 as u128 | u128::from(locator) << 64));
        }
    }

    #[test]
    fn fragments_and_short_packets_keep_their_bytes() {
        // A later fragment: its first bytes are no header.
        let mut frame = packet(2, 1, 2, &[9; 20]);
        frame[6] = 44;
        frame[40..48].copy_from_slice(&[17, 0, 0, 8, 0, 0, 0, 1]);
        let behind = frame[48..].to_vec();
        assert!(set_locator(&mut frame, 0, Offload::default(), Address::Destination, 5));
        assert_eq!(frame[48..], behind);
        assert_eq!(Ipv6::parse(&frame).unwrap().destination().to_bits(), 5 << 64 | 2);
        assert!(!set_locator(&mut [0x45; 60], 0, Offload::default(), Address::Source, 5));
    }
}
