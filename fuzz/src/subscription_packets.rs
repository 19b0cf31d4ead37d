//! The body of the target `subscription_packets`: packets through the engine, and what the rules say read one by one.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use weftwire_core::{Frame, LinkType, Port};
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_subscribe::{Compiler, MessageFormats, Rule, packet, read_rules};
use weftwire_switch::Engine;
use weftwire_text::SourceMap;

/// Messages with lengths in front, counted; some with a further header behind them.
const PREFIXED: &str = r#"
    @subscribe_counter[name=hits, window="100ns"]
    @subscribe[after=udp, when=udp.destination_port == 7, messages=count, prefix=8]
    header batch { @subscribe[] bit<8> version; bit<8> count; }
    @subscribe[message=batch, when=kind == 1]
    header one { @subscribe[match=exact] bit<8> kind; @subscribe[] bit<12> size; @subscribe[text=" "] bit<16> name; bit<4> rest; }
    @subscribe[message=batch, when=kind == 2]
    header two { bit<8> kind; @subscribe[match=lpm] bit<32> address; }
    @subscribe[after=one, when=one.rest == 3]
    header tail { @subscribe[] bit<128> wide; }
"#;

/// Messages of one size until the packet ends, behind TCP.
const FIXED: &str = r#"
    @subscribe[after=tcp, messages=rest, size=6]
    header stream { bit<16> number; }
    @subscribe[message=stream]
    header entry { @subscribe[] bit<3> kind; @subscribe[decimals=2] bit<29> price; @subscribe[] bit<16> last; }
    @subscribe[after=ipv4, when=ipv4.protocol == 99]
    header alone { @subscribe[] bit<64> key; }
"#;

const RULES: [&str; 2] = [
    "kind == 1 and size in [100, 2000] : fwd(1);
     one.size < 7 or two.address == 10.0.0.0/8 : fwd(2, 3);
     not (name prefix \"A\") : fwd(4);
     wide > 5 and count() over 40ns > 1 : fwd(5);
     hits > 2 and two.address != 10.1.0.0/16 : fwd(6);
     avg(one.size) over 100ns >= 1000 : fwd(7);
     udp.length < 20 : fwd(8);
     batch.version == 3 or ipv4.ttl < 9 : fwd(9);",
    "entry.price >= 2.5 and entry.kind != 3 : fwd(1);
     entry.last & 0x81ff == 1 : fwd(2);
     tcp.syn == 1 or entry.kind in {1, 5} : fwd(2, 3);
     sum(entry.last) over 1us > 70000 and tcp.window > 0 : fwd(4);
     key < 0x8000000000000000 : fwd(5);
     vlan.id == 5 or arp.operation == 2 or ipv6.hop_limit > 4 : fwd(6);
     min(entry.last) over 50ns < 5 : fwd(7);",
];

/// Compiling takes longer than a packet.
static COMPILED: LazyLock<[(Compiler, Vec<Rule>); 2]> = LazyLock::new(|| [0, 1].map(compiled));

fn compiled(choice: usize) -> (Compiler, Vec<Rule>) {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let text = [PREFIXED, FIXED][choice];
    let formats = MessageFormats::read("formats", text, &mut sources, &mut diagnostics);
    let formats = formats.expect("these formats are right");
    let rules = read_rules("rules", RULES[choice], &formats, &mut sources, &mut diagnostics);
    assert_eq!(rules.len(), RULES[choice].matches(';').count(), "these rules are right");
    (Compiler::new(formats, &Default::default(), &rules).expect("few clauses"), rules)
}

/// The first byte chooses formats and rules, and the link; then frames follow: how many nanoseconds later it is, two bytes of length, and
/// the bytes, with the IPv4 header's checksum made right if the length is odd.
pub fn subscription_packets(data: &[u8]) {
    let [choice, rest @ ..] = data else { return };
    let link = if choice & 2 == 0 { LinkType::Ethernet } else { LinkType::Ip };
    let (compiler, rules) = &COMPILED[usize::from(choice & 1)];
    let formats = compiler.formats();
    let mut engine = Engine::new(compiler);
    let mut evaluator = Evaluator::new(formats, rules);
    let (mut rest, mut now) = (rest, 0);
    while let [later, high, low, tail @ ..] = rest {
        now += u64::from(*later);
        let wanted = usize::from(u16::from_be_bytes([*high & 7, *low]));
        let (frame, tail) = tail.split_at(wanted.min(tail.len()));
        rest = tail;
        let mut frame = frame.to_vec();
        if wanted & 1 == 1 {
            right_checksums(link, &mut frame);
        }
        let mut fast: BTreeMap<Port, Vec<u8>> = BTreeMap::new();
        let copy = |port, copy: Frame<'_>| assert!(fast.insert(port, copy.bytes.to_vec()).is_none(), "one copy a port");
        let taken = engine.frame(now, link, Frame::new(&frame), copy, |_| {});
        let found = packet::messages(formats, link, &frame);
        assert_eq!(taken.err(), found.as_ref().err().copied());
        let Ok(found) = found else { continue };
        let mut keep: BTreeMap<Port, Vec<bool>> = BTreeMap::new();
        for (index, message) in found.messages.iter().enumerate() {
            for port in evaluator.message(message, now).ports {
                keep.entry(port).or_insert_with(|| vec![false; found.messages.len()])[index] = true;
            }
        }
        let slow: BTreeMap<Port, Vec<u8>> = keep
            .into_iter()
            .map(|(port, keep)| (port, packet::pruned(formats, link, &frame, &found, &keep).expect("it was parsed")))
            .collect();
        assert_eq!(fast, slow);
        for copy in slow.values() {
            packet::messages(formats, link, copy).expect("what is sent is accepted");
        }
    }
}

/// Makes the checksum of an IPv4 header right, and says that UDP has none, so that more than the parser is reached.
fn right_checksums(link: LinkType, frame: &mut [u8]) {
    let start = if link == LinkType::Ethernet { 14 } else { 0 };
    let Some(header) = frame.get_mut(start..start + 20) else { return };
    let protocol = header[9];
    header[0] = 0x45;
    header[10..12].fill(0);
    let sum = weftwire_core::checksum::checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    if protocol == 17
        && let Some(sum) = frame.get_mut(start + 26..start + 28)
    {
        sum.fill(0);
    }
}
