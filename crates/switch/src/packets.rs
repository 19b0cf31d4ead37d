//! Packets in, copies out: to each port the packet with the messages that go there.

use crate::extract::Extractor;
use crate::pipeline::{ActionSet, Memory, Patch, Pipeline};
use std::collections::BTreeMap;
use std::ops::Range;
use weftwire_core::{DropReason, Frame, LinkType, Offload, Packet, Port};
use weftwire_subscribe::compiler::{CallId, Compiler};
use weftwire_subscribe::formats::MessageFormats;
use weftwire_subscribe::packet::Pruning;
use weftwire_subscribe::tables::Delta;
use weftwire_subscribe::window::Window;

/// Counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Messages that were looked at.
    pub messages: u64,
    /// Messages with no action at all.
    pub unmatched: u64,
}

/// A compiled set of rules that packets are taken through.
///
/// - input: [`Engine::frame`];
/// - outside view: [`Engine::tally`].
#[derive(Clone, Debug)]
pub struct Engine {
    formats: MessageFormats,
    pipeline: Pipeline,
    extractor: Extractor,
    memory: Memory,
    tally: Tally,
    /// What follows is memory that is kept from packet to packet.
    packet: Packet,
    messages: Vec<Range<usize>>,
    rows: Vec<u64>,
    sets: Vec<ActionSet>,
    copies: Copies,
    group: Group,
}

/// Messages of a packet that have the same actions, in a packet of their own.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Which of all messages are in it.
    members: Vec<bool>,
    places: Vec<Range<usize>>,
    sets: Vec<ActionSet>,
    frame: Vec<u8>,
}

/// Makes the ports' copies of a packet.
#[derive(Clone, Debug, Default)]
struct Copies {
    wanted: Wanted,
    pruning: Pruning,
}

/// Where a switch's messages go.
pub trait Outlet {
    /// A port is to send this packet.
    fn copy(&mut self, port: Port, frame: Frame<'_>);

    /// These actions are to be carried out, in order, on a packet whose messages lie at `messages`; nowhere if it is no
    /// batch. Returns what is left to do on what they made of it, or `None` if no port is to get it.
    fn act(
        &mut self,
        calls: &[CallId],
        messages: &[Range<usize>],
        frame: &mut Vec<u8>,
        offload: Offload,
    ) -> Option<Offload>;
}

/// A set that no pipeline has, and which so is empty: what is left of a message that went its own way.
const NOTHING: ActionSet = ActionSet(u32::MAX);

/// Which messages each port gets.
#[derive(Clone, Debug, Default)]
struct Wanted {
    /// By port: a bit a message; only those of `touched` are anything.
    bits: Vec<Vec<u64>>,
    touched: Vec<Port>,
}

impl Engine {
    /// An engine before any packet. It follows the compiler when told to: [`Engine::apply`], [`Engine::take`], [`Engine::swap`].
    pub fn new(compiler: &Compiler) -> Engine {
        let pipeline = Pipeline::new(compiler);
        Engine {
            extractor: Extractor::new(compiler.formats(), &pipeline),
            formats: compiler.formats().clone(),
            pipeline,
            memory: Memory::default(),
            tally: Tally::default(),
            packet: Packet::default(),
            messages: Vec::new(),
            rows: Vec::new(),
            sets: Vec::new(),
            copies: Copies::default(),
            group: Group::default(),
        }
    }

    /// Goes over to the rules of another pipeline for the same formats, and leaves the old one there. Counts go on, and
    /// windows of the same functions over the same messages.
    pub fn swap(&mut self, pipeline: &mut Pipeline) {
        self.pipeline.swap(pipeline, &mut self.memory);
        self.extractor = Extractor::new(&self.formats, &self.pipeline);
    }

    /// Follows the latest change of the compiler's rules, in time that goes with what it changes. Counts and windows
    /// go on.
    pub fn apply(&mut self, compiler: &Compiler, delta: &Delta) {
        let columns = self.pipeline.columns().len();
        self.pipeline.apply(compiler, delta, &mut self.memory);
        if self.pipeline.columns().len() != columns {
            self.extractor = Extractor::new(compiler.formats(), &self.pipeline);
        }
    }

    /// Takes over a change that was made ready, as [`Pipeline::take`] does. Counts and windows go on.
    pub fn take(&mut self, patch: &mut Patch) {
        let columns = self.pipeline.columns().len();
        self.pipeline.take(patch, &mut self.memory);
        if self.pipeline.columns().len() != columns {
            self.extractor = Extractor::new(&self.formats, &self.pipeline);
        }
    }

    /// What the windows hold, by what they are of.
    pub(super) fn windows(&self) -> BTreeMap<String, Window> {
        self.pipeline.windows(&self.memory).collect()
    }

    /// Has the windows hold this from now on; the first text that is none of its windows is the error, and nothing changes.
    pub(super) fn set_windows(&mut self, windows: BTreeMap<String, Window>) -> Result<(), String> {
        self.memory = self.pipeline.memory(windows)?;
        Ok(())
    }

    /// Goes on counting from here.
    pub(super) fn count_from(&mut self, tally: Tally) {
        self.tally = tally;
    }

    /// The tables.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// What passed so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Takes a frame, which is no super-frame, through the tables. `copy` gets what each port is to send, ports in
    /// order; `call` the application's actions, message by message.
    ///
    /// A frame all of whose messages go to a port is copied as it is; of others a copy has the messages for its port,
    /// its count, lengths and checksums made right.
    ///
    /// # Errors
    /// The frame is dropped: a header is malformed, or a checksum is wrong.
    pub fn frame(
        &mut self,
        now_ns: u64,
        link: LinkType,
        frame: Frame<'_>,
        mut copy: impl FnMut(Port, Frame<'_>),
        mut call: impl FnMut(CallId),
    ) -> Result<(), DropReason> {
        self.look_up(now_ns, link, frame)?;
        for set in &self.sets {
            self.pipeline.calls(*set).iter().for_each(|id| call(*id));
        }
        let Engine { formats, pipeline, copies, sets, messages, .. } = self;
        copies.make(formats, pipeline, link, frame, (sets, messages), &mut copy)
    }

    /// The same for a switch that carries the application's actions out. Messages with the same actions, if others of
    /// the packet have other ones or none, get a packet of their own, in the order of their first messages; the last
    /// one is of those without actions. Ports get their copies of what the actions left of each.
    ///
    /// # Errors
    /// As [`Engine::frame`]; also if actions cut messages short that ports are to get one by one.
    pub fn frame_with_actions(
        &mut self,
        now_ns: u64,
        link: LinkType,
        frame: Frame<'_>,
        outlet: &mut impl Outlet,
    ) -> Result<(), DropReason> {
        self.look_up(now_ns, link, frame)?;
        let Engine { formats, pipeline, copies, sets, messages, group, .. } = self;
        let Group { members, places, sets: group_sets, frame: changed } = group;
        let mut at = 0;
        while let Some(first) = sets[at..].iter().position(|set| !pipeline.calls(*set).is_empty()) {
            at += first;
            let calls = pipeline.calls(sets[at]);
            members.clear();
            members.extend(sets.iter().map(|set| pipeline.calls(*set) == calls));
            changed.clear();
            let mut offload = frame.offload;
            if members.iter().all(|member| *member) {
                changed.extend_from_slice(frame.bytes);
            } else {
                let own = copies.pruning.prune(formats, link, frame, messages, |index| members[index])?;
                changed.extend_from_slice(own.bytes);
                offload = own.offload;
            }
            places.clear();
            group_sets.clear();
            let mut start = messages.first().map_or(0, |place| place.start);
            for (index, set) in sets.iter_mut().enumerate().filter(|(index, _)| members[*index]) {
                if let Some(place) = messages.get(index) {
                    places.push(start..start + place.len());
                    start += place.len();
                }
                group_sets.push(std::mem::replace(set, NOTHING));
            }
            if let Some(offload) = outlet.act(calls, places, changed, offload) {
                let frame = Frame { bytes: changed, offload };
                copies.make(formats, pipeline, link, frame, (group_sets, places), &mut |port, copy| {
                    outlet.copy(port, copy);
                })?;
            }
        }
        copies.make(formats, pipeline, link, frame, (sets, messages), &mut |port, copy| outlet.copy(port, copy))
    }

    /// Finds what each message of a frame gets: `sets`, and where they lie.
    fn look_up(&mut self, now_ns: u64, link: LinkType, frame: Frame<'_>) -> Result<(), DropReason> {
        self.packet.renew(link, frame, self.formats.packet_formats())?;
        let bytes = &frame.bytes[..self.packet.frame_length()];
        self.rows.clear();
        self.sets.clear();
        self.extractor.packet(&self.packet, bytes, &mut self.messages, &mut self.rows);
        self.pipeline.walk(&self.rows, now_ns, &mut self.memory, &mut self.sets);
        self.tally.messages += self.sets.len() as u64;
        self.tally.unmatched += self.sets.iter().filter(|set| self.pipeline.is_empty(**set)).count() as u64;
        Ok(())
    }
}

impl Copies {
    /// Gives each port its copy of a frame whose messages get these sets and lie there.
    fn make(
        &mut self,
        formats: &MessageFormats,
        pipeline: &Pipeline,
        link: LinkType,
        frame: Frame<'_>,
        (sets, places): (&[ActionSet], &[Range<usize>]),
        copy: &mut impl FnMut(Port, Frame<'_>),
    ) -> Result<(), DropReason> {
        let first = sets[0];
        if sets.iter().all(|set| *set == first) {
            pipeline.ports(first).iter().for_each(|port| copy(*port, frame));
            return Ok(());
        }
        if places.last().is_some_and(|place| place.end > frame.bytes.len()) {
            return Err(DropReason::BadLength);
        }
        self.wanted.fill(pipeline, sets);
        for port in &self.wanted.touched {
            let bits = &self.wanted.bits[usize::from(port.0)];
            let kept: u32 = bits.iter().map(|word| word.count_ones()).sum();
            if kept as usize == sets.len() {
                copy(*port, frame);
                continue;
            }
            let keep = |index: usize| bits[index / 64] >> (index % 64) & 1 == 1;
            copy(*port, self.pruning.prune(formats, link, frame, places, keep)?);
        }
        Ok(())
    }
}

impl Wanted {
    fn fill(&mut self, pipeline: &Pipeline, sets: &[ActionSet]) {
        for port in self.touched.drain(..) {
            self.bits[usize::from(port.0)].clear();
        }
        for (index, set) in sets.iter().enumerate() {
            for port in pipeline.ports(*set) {
                let place = usize::from(port.0);
                if self.bits.len() <= place {
                    self.bits.resize(place + 1, Vec::new());
                }
                let bits = &mut self.bits[place];
                if bits.is_empty() {
                    bits.resize(sets.len().div_ceil(64), 0);
                    self.touched.push(*port);
                }
                bits[index / 64] |= 1 << (index % 64);
            }
        }
        self.touched.sort_unstable();
    }
}
