//! How many connections a server has at the same time, and which of them goes when another one comes.
//!
//! Whoever is silent or idle locks nobody out: a connection that has no request under way makes room for one that comes,
//! first those that have not yet shown what they are, then the one that has been idle longest. One address of another
//! machine never has more than its share.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// The connections of a server, each with what ends it.
///
/// `enter` and `leave` frame a connection, `begin` and `end` each of its requests. Times are since any start.
#[derive(Debug)]
pub struct Places<H> {
    most: usize,
    most_of_peer: usize,
    places: BTreeMap<u64, Place<H>>,
    next: u64,
}

#[derive(Debug)]
struct Place<H> {
    peer: Option<IpAddr>,
    handle: H,
    /// It has shown that it speaks the protocol.
    proven: bool,
    /// Requests under way.
    requests: u32,
    /// Idle since then, if it has no requests.
    since: Duration,
}

impl<H> Places<H> {
    /// So many places in all, and so many for each [peer].
    pub fn new(most: usize, most_of_peer: usize) -> Places<H> {
        Places { most, most_of_peer, places: BTreeMap::new(), next: 0 }
    }

    /// Gives a connection a place, and with it what ends the connection that has lost its own.
    ///
    /// # Errors
    /// The handle, if nobody makes room: all that might have requests under way.
    pub fn enter(&mut self, peer: Option<IpAddr>, now: Duration, handle: H) -> Result<(u64, Option<H>), H> {
        let of_peer = peer.map_or(0, |peer| self.places.values().filter(|place| place.peer == Some(peer)).count());
        let evicted = if of_peer >= self.most_of_peer {
            self.idlest(|place| place.peer == peer)
        } else if self.places.len() >= self.most {
            self.idlest(|_| true)
        } else {
            return Ok((self.take(peer, now, handle), None));
        };
        let Some(evicted) = evicted.and_then(|id| self.places.remove(&id)) else { return Err(handle) };
        Ok((self.take(peer, now, handle), Some(evicted.handle)))
    }

    fn take(&mut self, peer: Option<IpAddr>, now: Duration, handle: H) -> u64 {
        self.next += 1;
        self.places.insert(self.next, Place { peer, handle, proven: false, requests: 0, since: now });
        self.next
    }

    fn idlest(&self, fits: impl Fn(&Place<H>) -> bool) -> Option<u64> {
        let idle = self.places.iter().filter(|(_, place)| place.requests == 0 && fits(place));
        idle.min_by_key(|(_, place)| (place.proven, place.since)).map(|(id, _)| *id)
    }

    /// The connection has a request under way, one more.
    pub fn begin(&mut self, id: u64) {
        if let Some(place) = self.places.get_mut(&id) {
            place.proven = true;
            place.requests += 1;
        }
    }

    /// A request of the connection is done.
    pub fn end(&mut self, id: u64, now: Duration) {
        if let Some(place) = self.places.get_mut(&id) {
            place.requests = place.requests.saturating_sub(1);
            place.since = now;
        }
    }

    /// The connection has ended. That it may have lost its place before does no harm.
    pub fn leave(&mut self, id: u64) {
        self.places.remove(&id);
    }
}

/// What counts as one peer: an address, or the network of 64 bits that an IPv6 host may choose its addresses from. `None`:
/// this machine itself, whose programs share an address.
pub fn peer(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Some(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
        }
        address => Some(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_unproven_go_first_then_the_longest_idle_and_never_the_busy() {
        let mut places = Places::new(3, 9);
        let (busy, _) = places.enter(None, at(0), "busy").unwrap();
        places.begin(busy);
        let (quiet, _) = places.enter(None, at(1), "quiet").unwrap();
        places.begin(quiet);
        places.end(quiet, at(2));
        let (silent, evicted) = places.enter(None, at(3), "silent").unwrap();
        assert_eq!(evicted, None);
        let (next, evicted) = places.enter(None, at(4), "next").unwrap();
        assert_eq!(evicted, Some("silent"));
        places.leave(silent);
        places.begin(next);
        places.end(next, at(5));
        let (last, evicted) = places.enter(None, at(6), "last").unwrap();
        assert_eq!(evicted, Some("quiet"));
        places.begin(last);
        places.begin(next);
        assert_eq!(places.enter(None, at(7), "late"), Err("late"));
        places.end(last, at(8));
        assert_eq!(places.enter(None, at(9), "late").unwrap().1, Some("last"));
        places.leave(busy);
        assert_eq!(places.enter(None, at(9), "more").unwrap().1, None);
    }

    #[test]
    fn a_peer_has_its_share_and_takes_from_itself_alone() {
        let mut places = Places::new(4, 2);
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| peer(text.parse().unwrap()));
        for (who, name) in [(other, "other"), (one, "first"), (one, "second")] {
            assert_eq!(places.enter(who, at(0), name).unwrap().1, None);
        }
        let (third, evicted) = places.enter(one, at(1), "third").unwrap();
        assert_eq!(evicted, Some("first"));
        places.begin(third);
        let (fourth, evicted) = places.enter(one, at(2), "fourth").unwrap();
        assert_eq!(evicted, Some("second"));
        places.begin(fourth);
        assert_eq!(places.enter(one, at(3), "fifth"), Err("fifth"));
        assert_eq!(places.enter(other, at(3), "again").unwrap().1, None);
    }

    #[test]
    fn peers_are_addresses_and_networks() {
        let of = |text: &str| peer(text.parse().unwrap()).map(|peer| peer.to_string());
        assert_eq!(of("127.0.0.1"), None);
        assert_eq!(of("::ffff:127.0.0.1"), None);
        assert_eq!(of("::1"), None);
        assert_eq!(of("10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(of("::ffff:10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(of("fd00:1:2:3:4:5:6:7").as_deref(), Some("fd00:1:2:3::"));
    }
}
