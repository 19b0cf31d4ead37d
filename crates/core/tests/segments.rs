//! Cutting super-frames as TSO does.

use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::tcp::{Tcp, TcpFlags, TcpOption};
use weftwire_core::{Formats, Frame, LinkType, Offload, Packet, Segmentation, segments};

fn cut(link: LinkType, bytes: &[u8], size: u16, kind: SegmentationKind) -> Vec<Vec<u8>> {
    let offload = Offload { segmentation: Some(Segmentation { size, kind }), checksum: Checksum::Partial };
    let cut: Vec<_> = segments(link, Frame { bytes, offload }).unwrap().map(|segment| segment.to_vec()).collect();
    for segment in &cut {
        // Lengths and checksums are right.
        Packet::parse(link, Frame::new(segment), &Formats::default()).unwrap();
    }
    cut
}

#[test]
fn tcp_over_ipv4() {
    let payload: Vec<u8> = (0..2500u32).map(|byte| byte as u8).collect();
    let flags = TcpFlags::ACK.with(TcpFlags::PSH).with(TcpFlags::FIN).with(TcpFlags::CWR);
    let frame = FrameBuilder::ethernet([2; 6], [4; 6])
        .ipv4(&Ipv4Fields { identification: 0xffff, ..Ipv4Fields::default() })
        .tcp(
            &TcpFields { sequence: u32::MAX - 999, flags, ..TcpFields::default() },
            &[TcpOption::Timestamps { value: 7, echo: 8 }],
        )
        .payload(&payload)
        .finish()
        .unwrap();
    let segments = cut(LinkType::Ethernet, &frame, 1000, SegmentationKind::TcpIpv4 { ecn: true });
    let seen: Vec<_> = segments
        .iter()
        .map(|bytes| {
            let ip = Ipv4::parse(Ethernet::parse(bytes).unwrap().payload()).unwrap();
            let tcp = Tcp::parse(ip.payload()).unwrap();
            assert_eq!(tcp.options().next(), Some(TcpOption::Timestamps { value: 7, echo: 8 }));
            (ip.identification(), tcp.sequence(), tcp.flags(), tcp.payload().to_vec())
        })
        .collect();
    let ack = TcpFlags::ACK;
    let last = ack.with(TcpFlags::PSH).with(TcpFlags::FIN);
    assert_eq!(
        seen,
        [
            (0xffff, u32::MAX - 999, ack.with(TcpFlags::CWR), payload[..1000].to_vec()),
            (0, 0, ack, payload[1000..2000].to_vec()),
            (1, 1000, last, payload[2000..].to_vec()),
        ]
    );
}

#[test]
fn udp_and_ipv6_and_ordinary_frames() {
    let frame = FrameBuilder::raw_ip().ipv6(&Ipv6Fields::default()).udp(1, 2).payload(&[9; 25]).finish().unwrap();
    let lengths = |segments: Vec<Vec<u8>>| segments.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths(cut(LinkType::Ip, &frame, 10, SegmentationKind::Udp)), [58, 58, 53]);
    assert_eq!(lengths(cut(LinkType::Ip, &frame, 25, SegmentationKind::Udp)), [73]);
    let mut partial = frame.clone();
    partial[46..48].fill(0);
    let offload = Offload { segmentation: None, checksum: Checksum::Partial };
    let whole: Vec<_> = segments(LinkType::Ip, Frame { bytes: &partial, offload }).unwrap().collect();
    assert_eq!(whole, [frame.into()]);
}
