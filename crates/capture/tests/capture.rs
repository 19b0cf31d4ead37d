//! Captures in both formats, there and back, and by hand where the library is not trusted.

use proptest::prelude::*;
use weftwire_capture::{CaptureError, CaptureInterface, CaptureReader, CaptureRecord, CaptureWriter};
use weftwire_core::{LinkType, Time};

fn read(bytes: &[u8]) -> Result<(Vec<CaptureInterface>, Vec<CaptureRecord>), CaptureError> {
    let mut reader = CaptureReader::new(bytes)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok((reader.interfaces().to_vec(), records))
}

fn interfaces() -> Vec<CaptureInterface> {
    vec![
        CaptureInterface { name: "port1".to_owned(), link: LinkType::Ethernet },
        CaptureInterface { name: "a longer name, Ω".to_owned(), link: LinkType::Ip },
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        frames in proptest::collection::vec(
            (0i64..4_000_000_000_000_000_000, 0usize..2, proptest::collection::vec(any::<u8>(), 0..80), "\\PC{0,9}"),
            0..12,
        ),
    ) {
        let mut pcapng = CaptureWriter::pcapng(Vec::new(), &interfaces()).unwrap();
        let mut pcap = CaptureWriter::pcap(Vec::new(), LinkType::Ip).unwrap();
        let mut wanted = Vec::new();
        for (time, interface, bytes, comment) in &frames {
            let time = Time::from_nanoseconds(*time);
            let comment = (!comment.is_empty()).then_some(comment.as_str());
            pcapng.write(time, *interface, bytes, comment).unwrap();
            pcap.write(time, 0, bytes, comment).unwrap();
            wanted.push(CaptureRecord {
                time,
                interface: *interface,
                bytes: bytes.clone(),
                original_length: bytes.len() as u32,
                comment: comment.map(str::to_owned),
            });
        }
        let (known, records) = read(&pcapng.into_inner()).unwrap();
        prop_assert_eq!(&records, &wanted);
        if !records.is_empty() {
            prop_assert_eq!(known, interfaces());
        }
        for record in &mut wanted {
            record.interface = 0;
            record.comment = None;
        }
        let (known, records) = read(&pcap.into_inner()).unwrap();
        prop_assert_eq!(records, wanted);
        prop_assert_eq!(known[0].link, LinkType::Ip);
    }
}

#[test]
fn super_frames_survive() {
    let frame = vec![7; 200_000];
    let mut pcap = CaptureWriter::pcap(Vec::new(), LinkType::Ethernet).unwrap();
    pcap.write(Time::ZERO, 0, &frame, None).unwrap();
    assert_eq!(read(&pcap.into_inner()).unwrap().1[0].bytes, frame);
    let mut pcapng = CaptureWriter::pcapng(Vec::new(), &interfaces()).unwrap();
    pcapng.write(Time::ZERO, 1, &frame, None).unwrap();
    assert_eq!(read(&pcapng.into_inner()).unwrap().1[0].bytes, frame);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut pcap = CaptureWriter::pcap(Vec::new(), LinkType::Ethernet).unwrap();
    let mut refused = |time: i64, interface: usize, length: usize| {
        pcap.write(Time::from_nanoseconds(time), interface, &vec![0; length], None).unwrap_err().to_string()
    };
    assert_eq!(refused(-1, 0, 1), "frame 1 can't be written: its time is negative");
    assert_eq!(refused(0, 1, 1), "frame 2 can't be written: the file has no interface 1");
    assert_eq!(refused(0, 0, 262_145), "frame 3 can't be written: it is longer than 262,144 bytes");
    assert!(refused(i64::MAX, 0, 1).starts_with("frame 4"));
}

/// Appends a block in the given byte order.
fn block(file: &mut Vec<u8>, big: bool, kind: u32, body: &[u8]) {
    let number = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let length = (12 + body.len().next_multiple_of(4)) as u32;
    file.extend(number(kind));
    file.extend(number(length));
    file.extend(body);
    file.resize(file.len().next_multiple_of(4), 0);
    file.extend(number(length));
}

/// A section with one interface of this link type and options, and one packet of this time stamp.
fn section(big: bool, link: u16, options: &[(u16, &[u8])], stamp: u64) -> Vec<u8> {
    let short = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let long = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = Vec::new();
    let header = [&long(0x1a2b_3c4d)[..], &short(1), &short(0), &[0xff; 8]].concat();
    block(&mut file, big, 0x0a0d_0d0a, &header);
    let mut interface = [&short(link)[..], &short(0), &long(0)].concat();
    for (code, value) in options {
        interface.extend(short(*code));
        interface.extend(short(value.len() as u16));
        interface.extend(*value);
        interface.resize(interface.len().next_multiple_of(4), 0);
    }
    // No end mark behind the options: it may be left out.
    block(&mut file, big, 1, &interface);
    let stamp = [long((stamp >> 32) as u32), long(stamp as u32)].concat();
    block(&mut file, big, 6, &[&long(0)[..], &stamp, &long(5), &long(50), b"frame"].concat());
    file
}

#[test]
fn time_stamps_are_what_the_interface_says() {
    let time = |options: &[(u16, &[u8])], stamp| {
        let (_, records) = read(&section(false, 1, options, stamp)).unwrap();
        records[0].time.nanoseconds()
    };
    assert_eq!(time(&[], 1_500_000), 1_500_000_000, "microseconds by default");
    assert_eq!(time(&[(9, &[9])], 1_500_000_001), 1_500_000_001);
    assert_eq!(time(&[(9, &[3])], 1_500), 1_500_000_000);
    assert_eq!(time(&[(9, &[12])], 1_999), 1, "picoseconds are rounded down");
    assert_eq!(time(&[(9, &[0x80 | 10])], 1536), 1_500_000_000, "powers of 2");
    assert_eq!(time(&[(14, &(-2i64).to_le_bytes())], 5_000_000), 3_000_000_000, "offset in seconds");
    assert_eq!(time(&[(10, &[0; 4]), (9, &[6])], 1), 1_000, "a time zone is no fault");
    assert!(read(&section(false, 1, &[(9, &[0])], u64::MAX)).is_err());
}

#[test]
fn sections_follow_each_other_in_any_byte_order() {
    let mut file = section(true, 1, &[(2, b"first"), (14, &5i64.to_be_bytes())], 7);
    file.extend(section(false, 101, &[(2, b"second")], 8));
    // A simple packet block: no time stamp, interface 0.
    block(&mut file, false, 3, &[&4u32.to_le_bytes()[..], b"more"].concat());
    let (interfaces, records) = read(&file).unwrap();
    let names: Vec<_> = interfaces.iter().map(|interface| (interface.name.as_str(), interface.link)).collect();
    assert_eq!(names, [("first", LinkType::Ethernet), ("second", LinkType::Ip)]);
    let seen: Vec<_> = records.iter().map(|r| (r.time.nanoseconds(), r.interface, r.original_length)).collect();
    assert_eq!(seen, [(5_000_007_000, 0, 50), (8_000, 1, 50), (8_000, 1, 4)]);
    assert_eq!(records[2].bytes, b"more");
}

#[test]
fn faults_say_where() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("no capture file"));
    assert!(message(b"GIF89a, or something else altogether").contains("no capture file"));
    assert!(message(&section(true, 113, &[], 0)).contains("link type 113 is not supported"));
    let two = [section(true, 1, &[], 0), section(true, 1, &[], 0)].concat();
    assert_eq!(message(&two[..two.len() - 1]), "record 2: the file ends inside a block");
    let mut pcap = CaptureWriter::pcap(Vec::new(), LinkType::Ethernet).unwrap();
    pcap.write(Time::ZERO, 0, &[1; 60], None).unwrap();
    pcap.write(Time::ZERO, 0, &[1; 60], None).unwrap();
    let mut file = pcap.into_inner();
    assert_eq!(message(&file[..file.len() - 1]), "record 2: it ends early");
    // A frame cut at a snap length of 10: the file is fine.
    file[16..20].copy_from_slice(&10u32.to_ne_bytes());
    assert_eq!(read(&file).unwrap().1.len(), 2);
}
