//! A group of consumers that share the partitions of topics: who is in it, and who has what.
//!
//! The leader, one of the consumers, decides who gets what; the group only brings them together. In a round of joining
//! every member says that it is there; when all have, or time is up, the round has a number, the generation, and each
//! is told. Then all ask for their share, and get it once the leader has brought it.

use super::request::{JoinGroup, Member as Asker};
use super::response::{Joined, code};
use crate::topic::Topic;
use std::collections::BTreeMap;
use std::time::Duration;

/// Members of a group.
pub const MAX_MEMBERS: usize = 64;
/// Bytes that a member says when it joins, and bytes of its share.
pub const MAX_SAID: usize = 64 << 10;
/// Bytes of a note with an offset; Kafka's own limit.
pub const MAX_NOTE: usize = 4_096;
/// About the memory that a group, a member or an offset takes beside its texts.
const OVERHEAD: usize = 256;
/// How long a member may be silent, and have to join again: at least and at most.
const SESSION: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1_800));

/// How far a group has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The next record to read.
    pub offset: i64,
    /// The client's note.
    pub note: String,
}

/// A group.
#[derive(Debug, Default)]
pub struct Group {
    kind: String,
    members: BTreeMap<String, Member>,
    leader: String,
    protocol: String,
    generation: i32,
    state: State,
    offsets: BTreeMap<(Topic, u16), Offset>,
    /// Members that ever were.
    numbered: u64,
    /// Bytes of the notes with offsets.
    notes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// All have their shares, or nobody is there.
    #[default]
    Settled,
    /// Members join until then, as a time since the broker's start.
    Joining(Duration),
    /// The leader has not brought the shares.
    Sharing,
}

#[derive(Debug)]
struct Member {
    session: Duration,
    rebalance: Duration,
    protocols: Vec<(String, Vec<u8>)>,
    share: Vec<u8>,
    /// It has joined in this round, or in the last if none is on.
    joined: bool,
    heard: Duration,
}

impl Group {
    /// A member joins, or joins again. Gives its number, with which [`Group::joined`] says how it went.
    ///
    /// # Errors
    /// The protocol's error.
    pub fn join(&mut self, now: Duration, client: &str, request: &JoinGroup<'_>) -> Result<String, i16> {
        self.expire(now);
        let milliseconds = |number: i32| u64::try_from(number).map(Duration::from_millis).unwrap_or_default();
        let (session, rebalance) = (milliseconds(request.session), milliseconds(request.rebalance));
        if session < SESSION.0 || session > SESSION.1 {
            return Err(code::INVALID_SESSION_TIMEOUT);
        }
        if !request.member.is_empty() && !self.members.contains_key(request.member) {
            return Err(code::UNKNOWN_MEMBER_ID);
        }
        let said = request.protocols.iter().map(|(name, said)| name.len() + said.len()).sum::<usize>();
        if said + request.kind.len() > MAX_SAID {
            return Err(code::INVALID_REQUEST);
        }
        if request.protocols.is_empty() || !self.agrees(request) {
            return Err(code::INCONSISTENT_GROUP_PROTOCOL);
        }
        let protocols: Vec<_> = request.protocols.iter().map(|(name, said)| ((*name).into(), said.to_vec())).collect();
        let full = self.members.len() >= MAX_MEMBERS;
        let name = match self.members.get_mut(request.member) {
            Some(member) => {
                member.heard = now;
                let unchanged = member.protocols == protocols;
                member.protocols = protocols;
                // One that did not hear the answer is told again; the leader asks for a new round by joining.
                if unchanged && self.state == State::Settled && self.leader != request.member {
                    return Ok(request.member.to_owned());
                }
                member.joined = true;
                request.member.to_owned()
            }
            None if full => return Err(code::GROUP_MAX_SIZE_REACHED),
            None => {
                self.numbered += 1;
                let name = format!("{}-{}", client.chars().take(64).collect::<String>(), self.numbered);
                let rebalance = rebalance.clamp(SESSION.0, SESSION.1);
                let member = Member { session, rebalance, protocols, share: Vec::new(), joined: true, heard: now };
                self.members.insert(name.clone(), member);
                name
            }
        };
        self.kind = request.kind.to_owned();
        self.start_round(now, Some(&name));
        self.end_round(now);
        Ok(name)
    }

    /// Whether all members know one way to share that the new one knows too.
    fn agrees(&self, request: &JoinGroup<'_>) -> bool {
        let mut others = self.members.iter().filter(|(name, _)| *name != request.member).peekable();
        if others.peek().is_some() && self.kind != request.kind {
            return false;
        }
        let others: Vec<_> = others.map(|(_, member)| member).collect();
        request.protocols.iter().any(|(name, _)| others.iter().all(|other| other.knows(name)))
    }

    fn start_round(&mut self, now: Duration, first: Option<&str>) {
        if matches!(self.state, State::Joining(_)) || self.members.is_empty() {
            return;
        }
        let longest = self.members.values().map(|member| member.rebalance).max().unwrap_or_default();
        self.state = State::Joining(now + longest);
        for (name, member) in &mut self.members {
            member.joined = Some(name.as_str()) == first;
            member.share.clear();
        }
    }

    /// Ends a round if all have joined, or time is up.
    fn end_round(&mut self, now: Duration) {
        let State::Joining(deadline) = self.state else { return };
        if now >= deadline {
            self.members.retain(|_, member| member.joined);
        }
        if !self.members.values().all(|member| member.joined) {
            return;
        }
        self.generation = self.generation.wrapping_add(1).max(1);
        let Some((first, _)) = self.members.iter().next() else {
            self.state = State::Settled;
            return;
        };
        if !self.members.contains_key(&self.leader) {
            self.leader = first.clone();
        }
        let all_know = |name: &str| self.members.values().all(|member| member.knows(name));
        let preferred = self.members[&self.leader].protocols.iter().map(|(name, _)| name);
        // There is one: nobody may join without.
        self.protocol = preferred.clone().find(|name| all_know(name)).cloned().unwrap_or_default();
        self.state = State::Sharing;
        for member in self.members.values_mut() {
            member.heard = now;
        }
    }

    /// How joining went; `None` while the round is on.
    pub fn joined(&mut self, now: Duration, name: &str) -> Option<Joined> {
        self.expire(now);
        let Some(member) = self.members.get(name) else {
            return Some(Joined { error: code::UNKNOWN_MEMBER_ID, generation: -1, ..Joined::default() });
        };
        if matches!(self.state, State::Joining(_)) {
            // A round that began after the one it joined in: it is to join again.
            let joined = member.joined;
            let again = Joined { error: code::REBALANCE_IN_PROGRESS, generation: -1, ..Joined::default() };
            return (!joined).then_some(again);
        }
        let members = match self.leader == name {
            true => self.members.iter().map(|(name, member)| (name.clone(), member.said(&self.protocol))).collect(),
            false => Vec::new(),
        };
        Some(Joined {
            error: code::NONE,
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            member: name.to_owned(),
            members,
        })
    }

    /// A member asks for its share; the leader brings all. [`Group::share`] gives it.
    ///
    /// # Errors
    /// The protocol's error.
    pub fn sync(&mut self, now: Duration, asker: &Asker<'_>, shares: &[(&str, &[u8])]) -> Result<(), i16> {
        self.known(now, asker)?;
        if shares.iter().any(|(_, share)| share.len() > MAX_SAID) {
            return Err(code::INVALID_REQUEST);
        }
        if self.state == State::Sharing && self.leader == asker.member {
            for (name, share) in shares {
                if let Some(member) = self.members.get_mut(*name) {
                    member.share = share.to_vec();
                }
            }
            self.state = State::Settled;
        }
        Ok(())
    }

    /// The member's share; `None` until the leader has brought it.
    pub fn share(&mut self, now: Duration, name: &str, generation: i32) -> Option<Result<Vec<u8>, i16>> {
        self.expire(now);
        let Some(member) = self.members.get_mut(name) else { return Some(Err(code::UNKNOWN_MEMBER_ID)) };
        if self.generation != generation || matches!(self.state, State::Joining(_)) {
            return Some(Err(code::REBALANCE_IN_PROGRESS));
        }
        member.heard = now;
        (self.state == State::Settled).then(|| Ok(member.share.clone()))
    }

    /// A member is alive. Gives the protocol's error.
    pub fn heartbeat(&mut self, now: Duration, asker: &Asker<'_>) -> i16 {
        match (self.known(now, asker), self.state) {
            (Err(error), _) => error,
            (Ok(()), State::Joining(_)) => code::REBALANCE_IN_PROGRESS,
            (Ok(()), _) => code::NONE,
        }
    }

    /// A member goes. Gives the protocol's error.
    pub fn leave(&mut self, now: Duration, name: &str) -> i16 {
        if self.members.remove(name).is_none() {
            return code::UNKNOWN_MEMBER_ID;
        }
        self.gone(now);
        code::NONE
    }

    /// Remembers how far the group has read of a partition that there is. Gives the protocol's error.
    pub fn commit(&mut self, partition: (Topic, u16), offset: Offset) -> i16 {
        if offset.note.len() > MAX_NOTE {
            return code::OFFSET_METADATA_TOO_LARGE;
        }
        self.notes += offset.note.len();
        let before = self.offsets.insert(partition, offset);
        self.notes -= before.map_or(0, |before| before.note.len());
        code::NONE
    }

    /// Whether somebody may [commit](Group::commit): a member, or anybody if there are no members.
    ///
    /// # Errors
    /// The protocol's error.
    pub fn may_commit(&mut self, now: Duration, asker: &Asker<'_>) -> Result<(), i16> {
        match asker.generation < 0 && asker.member.is_empty() && self.members.is_empty() {
            true => Ok(()),
            false => self.known(now, asker),
        }
    }

    /// How far the group has read.
    pub fn offsets(&self) -> &BTreeMap<(Topic, u16), Offset> {
        &self.offsets
    }

    /// About the bytes of memory that it takes.
    pub fn size(&self) -> usize {
        let said =
            |member: &Member| -> usize { member.protocols.iter().map(|(name, said)| name.len() + said.len()).sum() };
        let members: usize =
            self.members.iter().map(|(name, member)| OVERHEAD + name.len() + said(member) + member.share.len()).sum();
        OVERHEAD + self.kind.len() + members + self.offsets.len() * OVERHEAD + self.notes
    }

    /// Whether it has neither members nor anything to remember.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.offsets.is_empty()
    }

    /// Notes that a member was heard, if it is one and knows the last round.
    fn known(&mut self, now: Duration, asker: &Asker<'_>) -> Result<(), i16> {
        self.expire(now);
        let member = self.members.get_mut(asker.member).ok_or(code::UNKNOWN_MEMBER_ID)?;
        if asker.generation != self.generation {
            return Err(code::ILLEGAL_GENERATION);
        }
        member.heard = now;
        Ok(())
    }

    /// Removes members that have not been heard of, and ends a round whose time is up.
    fn expire(&mut self, now: Duration) {
        let before = self.members.len();
        let joining = matches!(self.state, State::Joining(_));
        // One that waits for the end of a round is silent by right.
        self.members.retain(|_, member| (joining && member.joined) || now <= member.heard + member.session);
        match self.members.len() < before {
            true => self.gone(now),
            false => self.end_round(now),
        }
    }

    fn gone(&mut self, now: Duration) {
        self.start_round(now, None);
        self.end_round(now);
        if self.members.is_empty() {
            self.state = State::Settled;
        }
    }
}

impl Member {
    fn knows(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|(name, _)| name == protocol)
    }

    fn said(&self, protocol: &str) -> Vec<u8> {
        self.protocols.iter().find(|(name, _)| name == protocol).map(|(_, said)| said.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn request<'a>(member: &'a str, said: &'a [u8]) -> JoinGroup<'a> {
        let protocols = vec![("range", said), ("sticky", said)];
        JoinGroup { group: "g", session: 6_000, rebalance: 10_000, member, kind: "consumer", protocols }
    }

    fn asker(generation: i32, member: &str) -> Asker<'_> {
        Asker { group: "g", generation, member }
    }

    /// A group with two members that have their shares.
    fn pair() -> (Group, String, String) {
        let mut group = Group::default();
        let one = group.join(SECOND, "one", &request("", b"1")).unwrap();
        let alone = group.joined(SECOND, &one).unwrap();
        assert_eq!((alone.generation, &*alone.protocol, &alone.leader), (1, "range", &one));
        group.sync(SECOND, &asker(1, &one), &[(&one, b"all")]).unwrap();
        assert_eq!(group.share(SECOND, &one, 1), Some(Ok(b"all".into())));

        let two = group.join(SECOND, "two", &request("", b"2")).unwrap();
        assert_eq!(group.joined(SECOND, &two), None, "the other is to join again");
        assert_eq!(group.heartbeat(SECOND, &asker(1, &one)), code::REBALANCE_IN_PROGRESS);
        assert_eq!(group.join(SECOND, "one", &request(&one, b"1")).as_ref(), Ok(&one));
        let (first, second) = (group.joined(SECOND, &one).unwrap(), group.joined(SECOND, &two).unwrap());
        assert_eq!(first.members, [(one.clone(), b"1".to_vec()), (two.clone(), b"2".to_vec())]);
        assert_eq!((second.generation, &second.leader, second.members.len()), (2, &one, 0));

        group.sync(SECOND, &asker(2, &two), &[]).unwrap();
        assert_eq!(group.share(SECOND, &two, 2), None, "the leader has not brought it");
        group.sync(SECOND, &asker(2, &one), &[(&one, b"a"), (&two, b"b"), ("other", b"c")]).unwrap();
        assert_eq!(group.share(SECOND, &two, 2), Some(Ok(b"b".into())));
        assert_eq!(group.heartbeat(SECOND, &asker(2, &two)), code::NONE);
        (group, one, two)
    }

    #[test]
    fn members_share_and_a_leaver_is_replaced() {
        let (mut group, one, two) = pair();
        assert_eq!(group.heartbeat(SECOND, &asker(1, &two)), code::ILLEGAL_GENERATION);
        assert_eq!(group.heartbeat(SECOND, &asker(2, "nobody")), code::UNKNOWN_MEMBER_ID);
        assert_eq!(group.leave(SECOND, &one), code::NONE);
        assert_eq!(group.leave(SECOND, &one), code::UNKNOWN_MEMBER_ID);
        assert_eq!(group.heartbeat(SECOND, &asker(2, &two)), code::REBALANCE_IN_PROGRESS);
        group.join(SECOND, "two", &request(&two, b"2")).unwrap();
        let joined = group.joined(SECOND, &two).unwrap();
        assert_eq!((joined.generation, &joined.leader, joined.members.len()), (3, &two, 1));
    }

    #[test]
    fn the_silent_are_removed() {
        let (mut group, one, two) = pair();
        assert_eq!(group.heartbeat(SECOND * 5, &asker(2, &two)), code::NONE);
        assert_eq!(group.heartbeat(SECOND * 8, &asker(2, &two)), code::REBALANCE_IN_PROGRESS);
        assert_eq!(group.heartbeat(SECOND * 8, &asker(2, &one)), code::UNKNOWN_MEMBER_ID);
        // Then the other too.
        assert_eq!(group.heartbeat(SECOND * 20, &asker(2, &two)), code::UNKNOWN_MEMBER_ID);
        assert!(group.is_empty());
    }

    #[test]
    fn a_round_ends_when_time_is_up() {
        let (mut group, one, two) = pair();
        let three = group.join(SECOND, "three", &request("", b"3")).unwrap();
        let mut now = SECOND;
        while group.joined(now, &three).is_none() {
            now += SECOND;
            for member in [&one, &two] {
                group.heartbeat(now, &asker(2, member));
            }
        }
        assert_eq!(now, SECOND * 11);
        assert_eq!(group.joined(now, &three).unwrap().leader, three);
        assert_eq!(group.heartbeat(now, &asker(3, &one)), code::UNKNOWN_MEMBER_ID);
    }

    #[test]
    fn who_does_not_fit_is_refused() {
        let (mut group, one, _) = pair();
        let other = JoinGroup { protocols: vec![("other", b"")], ..request("", b"") };
        assert_eq!(group.join(SECOND, "x", &other), Err(code::INCONSISTENT_GROUP_PROTOCOL));
        let other = JoinGroup { kind: "connect", ..request("", b"") };
        assert_eq!(group.join(SECOND, "x", &other), Err(code::INCONSISTENT_GROUP_PROTOCOL));
        assert_eq!(group.join(SECOND, "x", &request("nobody", b"")), Err(code::UNKNOWN_MEMBER_ID));
        let long = vec![0; MAX_SAID + 1];
        assert_eq!(group.join(SECOND, "x", &request("", &long)), Err(code::INVALID_REQUEST));
        let other = JoinGroup { session: 0, ..request("", b"") };
        assert_eq!(group.join(SECOND, "x", &other), Err(code::INVALID_SESSION_TIMEOUT));
        let shares = [(&*one, &long[..])];
        assert_eq!(group.sync(SECOND, &asker(2, &one), &shares), Err(code::INVALID_REQUEST));
        let place = (Topic::new("t").unwrap(), 0);
        let before = group.size();
        for (length, expected) in [(MAX_NOTE, code::NONE), (MAX_NOTE + 1, code::OFFSET_METADATA_TOO_LARGE)] {
            assert_eq!(group.commit(place, Offset { offset: 1, note: "n".repeat(length) }), expected);
        }
        assert_eq!(group.size(), before + OVERHEAD + MAX_NOTE);
        group.commit(place, Offset { offset: 1, note: String::new() });
        assert_eq!(group.size(), before + OVERHEAD);
        for number in 0..MAX_MEMBERS {
            assert_eq!(group.join(SECOND, "x", &request("", b"")).is_ok(), number < MAX_MEMBERS - 2);
        }
    }
}
