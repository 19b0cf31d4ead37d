//! Which of several ports or trees a packet takes.

use crate::{PortId, SwitchId, below, mix};

/// How packets are spread over the ports of a logical up port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// Each packet at random.
    Random,
    /// One port after the other, per switch.
    RoundRobin,
    /// By the packet's flow, so that a flow keeps its path.
    FlowHash,
}

/// Makes the choices, the same ones again for the same seed and packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spreader {
    spread: Spread,
    seed: u64,
    /// Choices made: per switch for round robin, in the first place for random ones.
    made: Vec<u64>,
}

impl Spreader {
    /// Without a choice made yet.
    pub fn new(spread: Spread, seed: u64) -> Self {
        Spreader { spread, seed, made: Vec::new() }
    }

    /// One of a switch's ports for a packet of a flow; `None` if there is none.
    pub fn choose(&mut self, switch: SwitchId, ports: &[PortId], flow: u64) -> Option<PortId> {
        if ports.is_empty() {
            return None;
        }
        let index = match self.spread {
            Spread::FlowHash => below(mix(mix(self.seed, flow), u64::from(switch.0)), ports.len()),
            Spread::Random => below(mix(self.seed, self.count(0)), ports.len()),
            Spread::RoundRobin => (self.count(switch.index()) % ports.len() as u64) as usize,
        };
        Some(ports[index])
    }

    /// How many choices came before this one.
    fn count(&mut self, place: usize) -> u64 {
        if place >= self.made.len() {
            self.made.resize(place + 1, 0);
        }
        self.made[place] += 1;
        self.made[place] - 1
    }

    /// The tree of a packet, of so many. Depends on the flow and the seed alone, so that every switch finds the same one.
    pub fn tree(&self, flow: u64, trees: usize) -> u16 {
        below(mix(self.seed ^ 0x7472_6565, flow), trees.clamp(1, 1 << 16)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_spread_and_repeat() {
        let ports = [PortId(4), PortId(7), PortId(9)];
        for spread in [Spread::Random, Spread::RoundRobin, Spread::FlowHash] {
            let run = |seed| {
                let mut spreader = Spreader::new(spread, seed);
                (0..300).map(|flow| spreader.choose(SwitchId(3), &ports, flow).unwrap()).collect::<Vec<_>>()
            };
            assert_eq!(run(1), run(1));
            for port in ports {
                let count = run(1).iter().filter(|chosen| **chosen == port).count();
                assert!((70..=130).contains(&count), "{spread:?}: {count}");
            }
        }
        let mut spreader = Spreader::new(Spread::FlowHash, 1);
        assert_eq!(spreader.choose(SwitchId(0), &ports, 5), spreader.choose(SwitchId(0), &ports, 5));
        assert_eq!(spreader.choose(SwitchId(0), &[], 5), None);
    }
}
