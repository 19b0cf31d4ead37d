//! A network with a subscription switch, and who is listened to.

use super::StudyError;
use super::work::Work;
use std::io;
use std::ops::ControlFlow;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, Port, Ports, Time};
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, PortPlace};
use weftwire_sim::network::{Progress, Surroundings, simulate};
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::{Compiler, MessageFormats, read_rules};
use weftwire_switch::SubscriptionSwitch;
use weftwire_text::{LoadError, SourceMap};

/// Frames with their nanoseconds after the start.
pub type Frames = Vec<(i64, Vec<u8>)>;

/// A network whose functions are all the same switch.
pub struct Stage {
    network: Network,
    compiler: Compiler,
}

impl Stage {
    /// A network with formats and rules for its switch.
    ///
    /// # Errors
    /// [`StudyError::Defect`].
    pub fn new(network: &str, formats: &str, rules: &str) -> Result<Stage, StudyError> {
        let reading = weftwire_network::read("network", network, &[], &|name| Err(LoadError::Unknown(name.to_owned())));
        let said = |list: &[weftwire_text::Diagnostic]| {
            StudyError::Defect(list.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; "))
        };
        let mut network = reading.network.ok_or_else(|| said(&reading.diagnostics))?;
        network.captures.clear();
        let (mut sources, mut found) = (SourceMap::default(), Vec::new());
        let formats = MessageFormats::read("formats", formats, &mut sources, &mut found).ok_or_else(|| said(&found))?;
        let rules = read_rules("rules", rules, &formats, &mut sources, &mut found);
        let compiler = Compiler::new(formats, &Options::default(), &rules);
        let wrong = |rule: usize| StudyError::Defect(format!("rule {rule} comes to too many clauses"));
        Ok(Stage { network, compiler: compiler.map_err(|(rule, _)| wrong(rule))? })
    }

    /// Plays `frames` as the network's capture; `arrive` hears of each frame that arrives at the first port of one of the nodes `at`:
    /// the node's place in `at`, nanoseconds, and the frame. The work done is that of `frames`.
    pub fn run(
        &mut self,
        frames: Frames,
        at: &[&str],
        work: &mut Work<'_>,
        arrive: &mut dyn FnMut(usize, u64, &[u8]),
    ) -> Result<(), StudyError> {
        let place = |name: &&str| {
            let found = self.network.nodes.iter().position(|node| node.name == **name);
            let node = found.ok_or_else(|| StudyError::Defect(format!("no node {name}")))?;
            Ok(PortPlace { node: NodeIndex(node as u32), port: Port(1) })
        };
        let places = at.iter().map(place).collect::<Result<Vec<PortPlace>, StudyError>>()?;
        self.network.captures.clone_from(&places);
        let (packets, last) = (frames.len(), frames.last().map_or(0, |(at, _)| *at));
        let mut world = World { compiler: &self.compiler, frames, packets, last, places, work, arrive };
        let results = simulate(&self.network, &mut world).map_err(|error| StudyError::Defect(error.to_string()))?;
        if results.run.interrupted {
            return Err(StudyError::Interrupted);
        }
        work.finish(packets)
    }
}

struct World<'a, 'b> {
    compiler: &'a Compiler,
    frames: Frames,
    packets: usize,
    /// When the last frame goes.
    last: i64,
    places: Vec<PortPlace>,
    work: &'a mut Work<'b>,
    arrive: &'a mut dyn FnMut(usize, u64, &[u8]),
}

impl Surroundings for World<'_, '_> {
    fn function(&mut self, _: NodeIndex, ports: &Ports, _: u64) -> io::Result<Box<dyn Function>> {
        Ok(Box::new(SubscriptionSwitch::new(self.compiler, ports.clone())))
    }

    fn capture(&mut self, _: &str) -> io::Result<Frames> {
        Ok(std::mem::take(&mut self.frames))
    }

    fn frame(&mut self, at: Time, place: PortPlace, bytes: &[u8], sent: bool) -> io::Result<()> {
        if let (false, Some(index)) = (sent, self.places.iter().position(|known| *known == place)) {
            (self.arrive)(index, u64::try_from(at.nanoseconds()).unwrap_or(0), bytes);
        }
        Ok(())
    }

    fn trace(&mut self, _: NodeIndex, _: &TraceRecord) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        let share = progress.now.nanoseconds() as f64 / self.last.max(1) as f64;
        self.work.tell((share.min(1.0) * self.packets as f64) as usize)
    }
}
