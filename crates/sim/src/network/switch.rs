//! Switches: they learn where addresses are, and send to everybody what is for nobody known.

use super::flows::Map;
use super::frames::Slot;
use super::simulation::Simulation;
use std::io;
use weftwire_core::Port;
use weftwire_network::model::PortPlace;

/// Most addresses that a switch remembers.
const TABLE: usize = 65_536;

/// What a switch has learnt: by Ethernet address, the port.
#[derive(Default)]
pub struct Switch {
    ports: Map<u64, Port>,
}

fn number(mac: &[u8]) -> u64 {
    mac.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Simulation<'_> {
    /// A frame arrives at a switch.
    pub fn switch(&mut self, place: PortPlace, slot: Slot) -> io::Result<()> {
        let Some(addresses) = self.frames.get(slot).get(..12) else {
            self.drop_packet(place.node.0, "bad_header", slot);
            return Ok(());
        };
        let (to, from) = (number(&addresses[..6]), number(&addresses[6..]));
        let (group, from_group) = (addresses[0] & 1 == 1, addresses[6] & 1 == 1);
        let table = &mut self.switches.entry(place.node.0).or_default().ports;
        if !from_group && (table.len() < TABLE || table.contains_key(&from)) {
            table.insert(from, place.port);
        }
        if let Some(known) = table.get(&to).copied().filter(|_| !group) {
            return match self.lanes.out(place.node, known).filter(|_| known != place.port) {
                Some(lane) => self.transmit(lane, slot),
                None => {
                    self.drop_packet(place.node.0, "same_port", slot);
                    Ok(())
                }
            };
        }
        for port in (1..=self.lanes.ports(place.node)).map(Port).filter(|port| *port != place.port) {
            if let Some(lane) = self.lanes.out(place.node, port)
                && let Some(copy) = self.frames.duplicate(slot)
            {
                self.transmit(lane, copy)?;
            }
        }
        self.frames.release(slot);
        Ok(())
    }
}
