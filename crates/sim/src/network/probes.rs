//! Registers of machines over time.

use super::simulation::Simulation;
use super::tcp;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use weftwire_engine::parameter::hint;
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, NodeKind, Transport};
use weftwire_network::results::Probe;

/// Only the first flows are probed.
const PROBED_FLOWS: u32 = 64;

/// What probes have shown.
#[derive(Default)]
pub struct Probes {
    /// By flow, side and number of the probe.
    points: BTreeMap<(u32, usize, usize), Vec<(i64, i64)>>,
    /// Registers that probed flows have, for messages.
    known: BTreeSet<String>,
}

impl Probes {
    /// Checks the names, where only hosts have flows: what registers they have is known before.
    ///
    /// # Errors
    /// A register that hosts' TCP does not have.
    pub fn check(network: &Network) -> io::Result<()> {
        let function = |index: &NodeIndex| matches!(network.node(*index).kind, NodeKind::Function(_));
        let ends = || network.traffic.iter().flat_map(|traffic| traffic.receivers().iter().chain([&traffic.from]));
        let tcp = network.traffic.iter().any(|traffic| traffic.transport == Transport::Tcp);
        if !tcp || ends().any(function) {
            return Ok(());
        }
        let known = tcp::registers(network);
        match network.probes.iter().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                let text = format!("probes: the hosts' TCP has no register `{name}`; {}", hint(name, &known));
                Err(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
            None => Ok(()),
        }
    }
}

impl Simulation<'_> {
    /// Samples the registers that the network asks for.
    pub fn probe(&mut self) {
        let network = self.network;
        if network.probes.is_empty() {
            return;
        }
        for number in 0..(self.flows.all.len() as u32).min(PROBED_FLOWS) {
            let flow = self.flows.get_mut(number);
            if !flow.is_running() {
                continue;
            }
            let nodes = [network.traffic[flow.traffic as usize].from.0, flow.to.0];
            for (side, carrier) in flow.carriers.into_iter().enumerate() {
                let Some(id) = carrier else { continue };
                let Some(machine) = &self.machines[nodes[side] as usize] else { continue };
                let Some(detail) = machine.flow(id) else { continue };
                for (probe, name) in network.probes.iter().enumerate() {
                    if let Some(register) = detail.registers.iter().find(|register| register.name == *name) {
                        let points = self.probes.points.entry((number, side, probe)).or_default();
                        points.push((self.now, register.value));
                    }
                }
                if self.probes.known.is_empty() {
                    self.probes.known.extend(detail.registers.into_iter().map(|register| register.name));
                }
            }
        }
    }

    /// What was sampled. `rows` are the flows in the order of the results.
    pub fn probed(&mut self, rows: &[usize]) -> Vec<Probe> {
        let network = self.network;
        let Probes { points, known } = std::mem::take(&mut self.probes);
        for (index, name) in network.probes.iter().enumerate() {
            if !known.is_empty() && !points.keys().any(|(.., probe)| *probe == index) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                self.warn(|| format!("probes: no flow had a register `{name}`; {}", hint(name, &known)));
            }
        }
        let mut probes: Vec<Probe> = points
            .into_iter()
            .map(|((number, side, probe), points)| {
                let flow = &self.flows.all[number as usize];
                let node = [network.traffic[flow.traffic as usize].from, flow.to][side];
                Probe {
                    flow: rows.iter().position(|row| *row == number as usize).unwrap_or_default(),
                    node: network.node(node).name.clone(),
                    register: network.probes[probe].clone(),
                    points,
                }
            })
            .collect();
        probes.sort_by_key(|probe| probe.flow);
        probes
    }
}
