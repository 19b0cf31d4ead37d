//! The body of the target `chain_agent`: frames at two agents, one that takes messages without a code and one that checks codes.

use std::net::IpAddr;
use weftwire_chain::config::{Config, Policy, Registered};
use weftwire_chain::keys::Key;
use weftwire_chain::state::AgentState;
use weftwire_chain::{Agent, HOST, NETWORK};
use weftwire_core::port::{Checksum, Offload, Segmentation, SegmentationKind};
use weftwire_core::{Frame, Function, LinkType, Outbox, Ports, Time};

const MOST_SESSIONS: u32 = 8;

fn agent(own: u16, keys: Vec<Key>, link: LinkType) -> Agent {
    let addresses = |number: u16| {
        let v4 = IpAddr::from([10, 0, 0, number as u8]);
        vec![v4, IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, number])]
    };
    let policy = Policy {
        source: None,
        destination: None,
        destination_ports: None,
        boxes: vec![if own == 2 { 1 } else { 2 }],
        fail: Default::default(),
        exit: Default::default(),
        keep_port: false,
    };
    let config = Config {
        agent: own,
        agents: (1..=3).map(|number| Registered { number, addresses: addresses(number) }).collect(),
        keys,
        policies: vec![policy],
        subsession_ports: [61_000, 61_003],
        gateway: None,
        segment_reserve: 12,
        most_sessions: MOST_SESSIONS,
        most_half_open: MOST_SESSIONS,
        idle_seconds: 1,
    };
    Agent::new(config, Ports::new([(HOST, link), (NETWORK, link)]), [1, 2], 0).expect("the configuration is sound")
}

/// The first byte says of which link; then frames with their length (2 bytes), port and offloads (1 byte) and milliseconds (1 byte) in front.
pub fn chain_agent(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let link = if first % 2 == 0 { LinkType::Ip } else { LinkType::Ethernet };
    let key = Key { number: 1, secret: "fuzz".into() };
    let mut agents = [agent(2, vec![], link), agent(2, vec![key], link)];
    let mut now = Time::ZERO;
    while let Some((&[high, low, how, pause], behind)) = rest.split_first_chunk::<4>() {
        let (bytes, next) = behind.split_at(behind.len().min(usize::from(u16::from_be_bytes([high, low]))));
        rest = next;
        now = now.after(i64::from(pause) << 26);
        let cut = Segmentation { size: 9, kind: SegmentationKind::TcpIpv4 { ecn: false } };
        let checksum = [Checksum::Unverified, Checksum::Verified, Checksum::Partial][usize::from(how >> 1) % 3];
        let offload = Offload { segmentation: (how & 8 != 0).then_some(cut), checksum };
        for agent in &mut agents {
            let mut out = Outbox::new();
            agent.frame(now, if how & 1 == 0 { HOST } else { NETWORK }, Frame { bytes, offload }, &mut out);
            assert!(out.items().len() <= 1, "one frame gives one at most");
            assert!(agent.sessions().count() <= MOST_SESSIONS as usize, "the table is bounded");
        }
    }
    for agent in &mut agents {
        let state = agent.state();
        let (read, _) = AgentState::from_bytes(&state.to_bytes(None)).expect("a written state is read");
        assert_eq!(read, state);
        agent.fire(Time::MAX, &mut Outbox::new());
        assert_eq!(agent.sessions().count(), 0, "all sessions end");
    }
}
