//! An engine seen from outside.

use crate::instance::Instance;
use crate::state::TurnState;
use crate::text::{key_text, value_text};
use crate::{Executor, Runtime};
use std::collections::BTreeMap;
use weftwire_core::inspect::{
    Counters, FlowDetail, FlowPage, FlowSummary, Inspect, PendingTimer, RegisterValue, WaitingTurn,
};
use weftwire_core::live::Clocks;
use weftwire_core::{ControlError, DropReason, FlowId};

impl<E: Executor> Inspect for Runtime<E> {
    fn flows(&self) -> Vec<FlowSummary> {
        self.table.iter().map(|instance| self.summary(instance)).collect()
    }

    fn flows_after(&self, after: FlowId, most: usize) -> FlowPage {
        let (page, next) = self.table.page(after, most);
        FlowPage { flows: page.into_iter().map(|instance| self.summary(instance)).collect(), next }
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        let instance = self.table.get(flow)?;
        let image = &self.program.image;
        let registers = image.registers.iter().zip(&instance.registers);
        let settings = instance.timers.iter().filter_map(|handle| Some((handle, self.shared.calendar.get(*handle)?)));
        let slots = image.slots.iter().zip(&instance.slots);
        Some(FlowDetail {
            summary: self.summary(instance),
            registers: registers
                .filter(|(register, _)| !register.scratch)
                .map(|(register, &value)| RegisterValue {
                    name: register.name.clone(),
                    value,
                    text: value_text(register.kind, value),
                })
                .collect(),
            timers: settings
                .map(|(handle, setting)| {
                    let timer = &image.timers[usize::from(setting.timer)];
                    PendingTimer {
                        name: timer.name.clone(),
                        due: handle.deadline(),
                        payload: setting.payload[..timer.payload.len()].to_vec(),
                    }
                })
                .collect(),
            turns: self.waiting_of(instance),
            packets: slots.filter_map(|(name, slot)| Some((name.clone(), slot.as_ref()?.frame_length()))).collect(),
            counters: counters_of(instance),
        })
    }

    fn notice_name(&self, notice: u16) -> &str {
        self.program.image.notices.get(usize::from(notice)).map_or("notice", String::as_str)
    }

    fn snapshot(&self, flow: FlowId, clocks: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
        let state = Runtime::snapshot(self, flow, clocks).ok_or(ControlError::NoFlow(flow))?;
        Ok(state.to_bytes(&self.program.state_layout))
    }

    fn program(&self) -> Option<String> {
        String::from_utf8(self.program.image.to_json()).ok()
    }

    fn counters(&self) -> Counters {
        let counts = &self.shared.counts;
        let rows = self.program.image.rows.iter().zip(&counts.rows).enumerate();
        Counters {
            frames_in: counts.frames_in,
            frames_out: counts.frames_out,
            frames_passed: counts.frames_passed,
            flows_created: counts.flows_created,
            flows_live: self.table.len() as u64,
            flows_peak: counts.flows_peak,
            flows_expired: counts.flows_expired,
            flows_evicted: counts.flows_evicted,
            rows: rows
                .map(|(number, (row, count))| {
                    let (state, event) = (self.program.state_name(row.state), self.program.event_name(row.event));
                    (format!("{number} {state} {event}"), *count)
                })
                .collect(),
            drops: by_name(counts.drops.iter().map(|(reason, count)| (*reason, *count))).collect(),
        }
    }
}

impl<E: Executor> Runtime<E> {
    fn waiting_of(&self, instance: &Instance) -> Vec<WaitingTurn> {
        let queues = self.program.image.turns.iter().zip(&self.shared.turns).zip(&instance.waiting);
        let waiting = queues.filter_map(|((declared, queue), place)| {
            let place = (*place)?;
            let TurnState { rank, cost } = queue.request(place)?;
            Some(WaitingTurn { name: declared.name.clone(), rank, cost, ahead: queue.ahead(place) })
        });
        waiting.collect()
    }

    fn summary(&self, instance: &Instance) -> FlowSummary {
        FlowSummary {
            flow: instance.flow,
            key: key_text(&self.program, &instance.key),
            state: self.program.state_name(instance.state).into(),
            created: instance.axis.engine(instance.created),
            last_active: instance.last_active.at,
            events: instance.counts.events,
        }
    }
}

fn counters_of(instance: &Instance) -> BTreeMap<String, u64> {
    let counts = &instance.counts;
    let packets = [("packets_in".to_owned(), counts.packets_in), ("packets_out".to_owned(), counts.packets_out)];
    packets.into_iter().chain(by_name(counts.drops.iter())).collect()
}

fn by_name(drops: impl Iterator<Item = (DropReason, u64)>) -> impl Iterator<Item = (String, u64)> {
    drops.map(|(reason, count)| (reason.name().to_owned(), count))
}
