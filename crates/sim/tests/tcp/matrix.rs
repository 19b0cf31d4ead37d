//! Everything that a path may do, in every combination: losses one by one and in bursts, what comes late or twice, round trips, packet
//! sizes, both versions of IP, numbers that wrap. Days of virtual time, a minute or two of real time: `make test-long`.

use crate::support::{Connection, Fate, Line, data, endpoints, machine};
use std::net::IpAddr;
use weftwire_core::Endpoints;

const MILLISECOND: i64 = 1_000_000;

/// What a path does.
#[derive(Clone, Copy, Debug)]
struct Way {
    round_trip: i64,
    /// Of a thousand packets.
    lost: u64,
    /// Losses come several at once, 2.6 in the mean.
    bursts: bool,
    /// Two of a hundred packets come late and one comes twice.
    disturbed: bool,
    ipv6: bool,
    mtu: i64,
    /// Initial sequence number and first timestamp of both ends.
    first: u32,
}

/// All of them, one after the other.
fn ways() -> impl Iterator<Item = Way> {
    let losses = [(0, false), (10, false), (10, true), (50, false), (50, true), (100, false), (100, true)];
    let sizes = [(false, 576), (false, 1500), (false, 9000), (true, 1280), (true, 1500), (true, 9000)];
    // A wrap soon after the beginning, of numbers and of their signs; or the machine's own.
    let numbers = [0, (1 << 31) - 3_000, u32::MAX - 3_000];
    let mut all = Vec::new();
    for round_trip in [1, 10, 50, 100, 200] {
        for (lost, bursts) in losses {
            for disturbed in [false, true] {
                for (ipv6, mtu) in sizes {
                    let way = Way { round_trip, lost, bursts, disturbed, ipv6, mtu, first: 0 };
                    all.extend(numbers.map(|first| Way { first, ..way }));
                }
            }
        }
    }
    all.into_iter()
}

/// Losses in bursts (Gilbert): a state in which everything is lost lasts for 2.6 packets in the mean, and for five at most: where one segment is sent
/// again and again, as a SYN is, a long burst is a path that TCP gives up.
fn in_bursts(lost: u64, mut seed: u64) -> impl FnMut() -> bool {
    let (mut length, begins) = (0, lost * 384 / (1_000 - lost));
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = (seed >> 33) % 1_000;
        let bad = if length > 0 { dice >= 333 && length < 5 } else { dice < begins };
        length = if bad { length + 1 } else { 0 };
        bad
    }
}

/// Neither progress nor another timeout for longer than the timers allow: that of a probe, and the one in force. How many timeouts come in a row is
/// up to the path.
fn stands_still(connection: &Connection, since: &mut [(i64, i64, i64); 2]) -> Option<String> {
    (0..2).find_map(|end| {
        let register = |name| connection.register(end, name);
        let (una, next, backoff) = (register("una")?, register("next")?, register("backoff")?);
        if una == next || (una, backoff) != (since[end].0, since[end].1) {
            since[end] = (una, backoff, connection.now);
            return None;
        }
        let still = connection.now - since[end].2;
        // The back-off ends at a minute.
        let allowed = 2 * (register("timeout")? << backoff).min(60_000 * MILLISECOND) + MILLISECOND;
        (still > allowed).then(|| format!("end {end} stands still for {still} ns, allowed are {allowed}"))
    })
}

/// Brings bytes over both ways, with this recovery from losses; what is wrong, if something is.
fn try_out(way: Way, recovery: i64, seed: u64) -> Result<(), String> {
    let first = way.first.into();
    let registers = [("mtu", way.mtu), ("first", first), ("first_stamp", first), ("recovery", recovery)];
    let (mss, disturbed) = (way.mtu as usize - if way.ipv6 { 72 } else { 52 }, u64::from(way.disturbed));
    let data = [data(200 * mss + 1, 7), data(100 * mss, 11)];
    let line = Line {
        lost: if way.bursts { 0 } else { way.lost },
        doubled: 10 * disturbed,
        late: 20 * disturbed,
        delay: way.round_trip * MILLISECOND / 2,
    };
    let mut connection = Connection::new([machine(&registers), machine(&registers)], data.clone(), line, seed);
    if way.bursts {
        let mut loses = in_bursts(way.lost, seed);
        connection.fates = Box::new(move |_| if loses() { Fate::Lost } else { Fate::Passes });
    }
    let address = |last: u8| -> IpAddr {
        if way.ipv6 { [0xfd77, 0, 0, 0, 0, 0, 0, last.into()].into() } else { [10, 0, 0, last].into() }
    };
    connection.open_to(&Endpoints { local_address: address(1), remote_address: address(2), ..endpoints() });
    let (mut since, mut still) = ([(0, 0, 0); 2], None);
    connection.until(|connection| {
        still = stands_still(connection, &mut since);
        still.is_some()
    });
    if let Some(still) = still {
        return Err(still);
    }
    for (end, ours) in connection.ends.iter().enumerate() {
        if ours.received != data[1 - end] {
            return Err(format!("{} of {} bytes are right at end {end}", ours.received.len(), data[1 - end].len()));
        }
        if !ours.ended || ours.notices != ["established", "finished"] {
            return Err(format!("end {end} ends otherwise: {:?}", ours.notices));
        }
    }
    Ok(())
}

/// Every 101st: as that is prime, each value of each part is among them.
#[test]
fn some_of_all_ways_bring_every_byte() {
    try_all(ways().step_by(101));
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn all_ways_bring_every_byte() {
    try_all(ways());
}

fn try_all(ways: impl Iterator<Item = Way>) {
    let all = (1..).zip(ways).flat_map(|(seed, way)| (0..3).map(move |recovery| (seed, recovery, way)));
    let failed: Vec<String> = all
        .filter_map(|(seed, recovery, way)| {
            Some(format!("{way:?}, recovery {recovery}, seed {seed}: {}", try_out(way, recovery, seed).err()?))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
