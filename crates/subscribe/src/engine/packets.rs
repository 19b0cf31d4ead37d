//! Packets in, copies out: to each port the packet with the messages that go there.

use super::extract::Extractor;
use super::pipeline::{ActionSet, Memory, Pipeline};
use crate::compiler::{CallId, Compiler};
use crate::formats::MessageFormats;
use crate::packet::Pruning;
use std::ops::Range;
use weftwire_core::{DropReason, Frame, LinkType, Packet, Port};

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
    lying: Vec<Range<usize>>,
    rows: Vec<u64>,
    sets: Vec<ActionSet>,
    wanted: Wanted,
    pruning: Pruning,
}

/// Where a switch's messages go.
pub trait Outlet {
    /// A port is to send this packet.
    fn copy(&mut self, port: Port, frame: Frame<'_>);

    /// A message, at `message` of a packet that has it alone, is to go through these actions, and what they leave of it
    /// to these ports.
    fn act(&mut self, calls: &[CallId], ports: &[Port], message: Range<usize>, frame: Frame<'_>);
}

/// Which messages each port gets.
#[derive(Clone, Debug, Default)]
struct Wanted {
    /// By port: a bit a message; only those of `touched` are anything.
    bits: Vec<Vec<u64>>,
    touched: Vec<Port>,
}

impl Engine {
    /// An engine before any packet. It follows the compiler when told to: [`Engine::update`].
    pub fn new(compiler: &Compiler) -> Engine {
        let pipeline = Pipeline::new(compiler);
        Engine {
            extractor: Extractor::new(compiler.formats(), &pipeline),
            formats: compiler.formats().clone(),
            pipeline,
            memory: Memory::default(),
            tally: Tally::default(),
            packet: Packet::default(),
            lying: Vec::new(),
            rows: Vec::new(),
            sets: Vec::new(),
            wanted: Wanted::default(),
            pruning: Pruning::default(),
        }
    }

    /// Goes over to the rules that the compiler has now. Counts go on, windows start anew.
    pub fn update(&mut self, compiler: &Compiler) {
        self.pipeline = Pipeline::new(compiler);
        self.extractor = Extractor::new(compiler.formats(), &self.pipeline);
        self.memory = Memory::default();
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
        self.copies(link, frame, &mut copy)
    }

    /// The same for a switch that carries the application's actions out: each message with actions leaves its batch
    /// and goes to the outlet alone, in the batch's order; then the ports get their copies of what is left.
    ///
    /// # Errors
    /// As [`Engine::frame`].
    pub fn frame_with_actions(
        &mut self,
        now_ns: u64,
        link: LinkType,
        frame: Frame<'_>,
        outlet: &mut impl Outlet,
    ) -> Result<(), DropReason> {
        self.look_up(now_ns, link, frame)?;
        if self.sets.iter().all(|set| self.pipeline.calls(*set).is_empty()) {
            return self.copies(link, frame, &mut |port, frame| outlet.copy(port, frame));
        }
        let count = self.sets.len();
        for index in 0..count {
            let set = self.sets[index];
            let calls = self.pipeline.calls(set);
            if calls.is_empty() {
                continue;
            }
            let ports = self.pipeline.ports(set);
            match self.lying.get(index) {
                None => outlet.act(calls, ports, 0..self.packet.frame_length(), frame),
                Some(place) => {
                    let start = self.lying[0].start;
                    let message = start..start + place.len();
                    // Alone in its batch it is the packet as it came.
                    let alone = match count {
                        1 => frame,
                        _ => self.pruning.prune(&self.formats, link, frame, &self.lying, |kept| kept == index)?,
                    };
                    outlet.act(calls, ports, message, alone);
                }
            }
            self.sets[index] = ActionSet::default();
        }
        self.copies(link, frame, &mut |port, frame| outlet.copy(port, frame))
    }

    /// Finds what each message of a frame gets: `sets`, and where they lie.
    fn look_up(&mut self, now_ns: u64, link: LinkType, frame: Frame<'_>) -> Result<(), DropReason> {
        self.packet.renew(link, frame, self.formats.packet_formats())?;
        let bytes = &frame.bytes[..self.packet.frame_length()];
        self.rows.clear();
        self.sets.clear();
        self.extractor.packet(&self.packet, bytes, &mut self.lying, &mut self.rows);
        self.pipeline.walk(&self.rows, now_ns, &mut self.memory, &mut self.sets);
        self.tally.messages += self.sets.len() as u64;
        self.tally.unmatched += self.sets.iter().filter(|set| **set == ActionSet::default()).count() as u64;
        Ok(())
    }

    /// Gives each port its copy.
    fn copies(
        &mut self,
        link: LinkType,
        frame: Frame<'_>,
        copy: &mut impl FnMut(Port, Frame<'_>),
    ) -> Result<(), DropReason> {
        let first = self.sets[0];
        if self.sets.iter().all(|set| *set == first) {
            self.pipeline.ports(first).iter().for_each(|port| copy(*port, frame));
            return Ok(());
        }
        self.wanted.fill(&self.pipeline, &self.sets);
        for port in &self.wanted.touched {
            let bits = &self.wanted.bits[usize::from(port.0)];
            let kept: u32 = bits.iter().map(|word| word.count_ones()).sum();
            if kept as usize == self.sets.len() {
                copy(*port, frame);
                continue;
            }
            let keep = |index: usize| bits[index / 64] >> (index % 64) & 1 == 1;
            copy(*port, self.pruning.prune(&self.formats, link, frame, &self.lying, keep)?);
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
