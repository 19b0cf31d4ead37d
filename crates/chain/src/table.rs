//! The sessions of an agent, and what finds them: headers, tags, and the instants at which they end.

use crate::session::{Place, Session};
use crate::tuple::Tuple;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;
use std::net::{IpAddr, SocketAddr};
use weftwire_core::{FlowId, Time};

/// Where a session lies in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Index(u32);

/// The sessions.
#[derive(Clone, Debug)]
pub struct Table {
    sessions: Vec<Option<Session>>,
    /// When to look whether each is over: not after that.
    dates: Vec<Time>,
    free: Vec<u32>,
    by_flow: BTreeMap<FlowId, Index>,
    by_tag: BTreeMap<u32, Index>,
    by_number: BTreeMap<u64, Index>,
    due: BTreeSet<(Time, Index)>,
    /// Packets from the network, and from the host.
    headers: [HashTable<(Index, Place)>; 2],
    hash: SipHasher13,
    half_open: u32,
    idle_seconds: u32,
}

impl Table {
    /// An empty table whose dictionaries hash by this key.
    pub fn new(key: [u64; 2], idle_seconds: u32) -> Table {
        Table {
            sessions: Vec::new(),
            dates: Vec::new(),
            free: Vec::new(),
            by_flow: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            by_number: BTreeMap::new(),
            due: BTreeSet::new(),
            headers: [HashTable::new(), HashTable::new()],
            hash: SipHasher13::new_with_keys(key[0], key[1]),
            half_open: 0,
            idle_seconds,
        }
    }

    /// How many sessions there are.
    pub fn count(&self) -> usize {
        self.by_flow.len()
    }

    /// How many of them are being set up.
    pub fn half_open(&self) -> u32 {
        self.half_open
    }

    /// The sessions by number.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_flow.values().filter_map(|index| self.get(*index))
    }

    /// The session of a packet from the host or from the network, and where it comes in.
    pub fn find(&self, from_host: bool, tuple: Tuple) -> Option<(Index, Place)> {
        let is_it =
            |(index, place): &(Index, Place)| self.get(*index).and_then(|session| session.key(*place)) == Some(tuple);
        self.headers[usize::from(from_host)].find(self.hash(tuple), is_it).copied()
    }

    /// The session whose SYN has this tag.
    pub fn tagged(&self, tag: u32) -> Option<Index> {
        self.by_tag.get(&tag).copied()
    }

    /// The session that has this number in messages: the latest one, if the agent has left its chain and come back.
    pub fn numbered(&self, number: u64) -> Option<Index> {
        self.by_number.get(&number).copied()
    }

    /// The session of this number.
    pub fn flow(&self, flow: FlowId) -> Option<&Session> {
        self.by_flow.get(&flow).and_then(|index| self.get(*index))
    }

    /// Where the session of this number lies.
    pub fn index(&self, flow: FlowId) -> Option<Index> {
        self.by_flow.get(&flow).copied()
    }

    /// A session.
    pub fn get(&self, index: Index) -> Option<&Session> {
        self.sessions.get(index.0 as usize)?.as_ref()
    }

    /// Puts a session in. Those that have one of its headers go.
    pub fn insert(&mut self, session: Session) -> (Index, u32) {
        let replaced = self.make_way(&session);
        let index = Index(self.free.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.dates.push(Time::ZERO);
            self.sessions.len() as u32 - 1
        }));
        self.by_flow.insert(session.flow, index);
        self.take_in(index, session);
        (index, replaced)
    }

    /// Changes a session; its headers, its tag and its end may be others then. Those that have one of its headers go.
    pub fn change(&mut self, index: Index, change: impl FnOnce(&mut Session)) -> u32 {
        let Some(mut session) = self.take_out(index) else { return 0 };
        change(&mut session);
        let replaced = self.make_way(&session);
        self.take_in(index, session);
        replaced
    }

    /// Takes note of a packet, which changes no header.
    pub fn note(&mut self, index: Index, note: impl FnOnce(&mut Session)) {
        let Some(session) = self.sessions.get_mut(index.0 as usize).and_then(Option::as_mut) else { return };
        let phase = session.phase;
        note(session);
        if session.phase == phase {
            return;
        }
        self.half_open += u32::from(session.phase.is_half_open());
        self.half_open -= u32::from(phase.is_half_open());
        let expires = session.expires(self.idle_seconds);
        self.postpone(index, expires);
    }

    /// Looks at a session at another time.
    fn postpone(&mut self, index: Index, to: Time) {
        let date = std::mem::replace(&mut self.dates[index.0 as usize], to);
        self.due.remove(&(date, index));
        self.due.insert((to, index));
    }

    /// Takes a session out.
    pub fn remove(&mut self, index: Index) -> Option<Session> {
        let session = self.take_out(index)?;
        self.by_flow.remove(&session.flow);
        self.free.push(index.0);
        Some(session)
    }

    /// When a session is to be looked at next.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes out a session that is over at this time. Those that were active meanwhile get another date.
    pub fn expire(&mut self, now: Time) -> Option<Session> {
        while let Some((_, index)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            let expires = self.get(index)?.expires(self.idle_seconds);
            if expires <= now {
                return self.remove(index);
            }
            self.postpone(index, expires);
        }
        None
    }

    /// Removes the sessions that have a header of this one.
    fn make_way(&mut self, session: &Session) -> u32 {
        let mut removed = 0;
        for place in Place::ALL {
            let Some(tuple) = session.key(place) else { continue };
            if let Some((other, _)) = self.find(place.is_host(), tuple) {
                self.remove(other);
                removed += 1;
            }
        }
        removed
    }

    fn take_in(&mut self, index: Index, session: Session) {
        let expires = session.expires(self.idle_seconds);
        self.postpone(index, expires);
        self.half_open += u32::from(session.phase.is_half_open());
        if let Some(tag) = session.tag {
            self.by_tag.insert(tag, index);
        }
        self.by_number.insert(session.number, index);
        let keys = Place::ALL.map(|place| session.key(place));
        self.sessions[index.0 as usize] = Some(session);
        let Table { headers, sessions, hash, .. } = self;
        for (place, key) in Place::ALL.into_iter().zip(keys) {
            let Some(tuple) = key else { continue };
            headers[usize::from(place.is_host())].insert_unique(
                hash_of(hash, tuple),
                (index, place),
                |(index, place)| {
                    let key = sessions[index.0 as usize].as_ref().and_then(|session| session.key(*place));
                    key.map_or(0, |tuple| hash_of(hash, tuple))
                },
            );
        }
    }

    fn take_out(&mut self, index: Index) -> Option<Session> {
        for place in Place::ALL {
            let Some(tuple) = self.get(index)?.key(place) else { continue };
            let hash = self.hash(tuple);
            let headers = &mut self.headers[usize::from(place.is_host())];
            if let Ok(entry) = headers.find_entry(hash, |found| *found == (index, place)) {
                entry.remove();
            }
        }
        let session = self.sessions[index.0 as usize].take()?;
        self.due.remove(&(self.dates[index.0 as usize], index));
        self.half_open -= u32::from(session.phase.is_half_open());
        if let Some(tag) = session.tag {
            self.by_tag.remove(&tag);
        }
        if self.by_number.get(&session.number) == Some(&index) {
            self.by_number.remove(&session.number);
        }
        Some(session)
    }

    fn hash(&self, tuple: Tuple) -> u64 {
        hash_of(&self.hash, tuple)
    }
}

fn hash_of(keyed: &SipHasher13, tuple: Tuple) -> u64 {
    let mut hasher = *keyed;
    let mut end = |end: SocketAddr| match end.ip() {
        IpAddr::V4(address) => hasher.write_u64(u64::from(u32::from(address)) << 16 | u64::from(end.port())),
        IpAddr::V6(address) => {
            hasher.write_u128(address.into());
            hasher.write_u16(end.port());
        }
    };
    end(tuple.source);
    end(tuple.destination);
    hasher.finish()
}
