//! What an image asks of an engine, by name. An engine that lacks something says so when it loads the image, not when a
//! packet comes.

use crate::types::{
    Environment, Event, Feature, Image, Operand, Operation, Operator, OtherPackets, PacketRef, Query, WhenFull,
};
use std::collections::BTreeSet;

impl Image {
    /// The features that the image uses, in order: what [`Image::features`] should say.
    pub fn used_features(&self) -> Vec<Feature> {
        let mut used = BTreeSet::new();
        let mut add = |feature: Feature, is_used: bool| {
            if is_used {
                used.insert(feature);
            }
        };
        let imported = |format: &crate::types::Format| format.place != crate::types::Place::Builtin;
        let expires = self.flow.expire > 0 || self.states.iter().any(|state| state.expire.is_some_and(|idle| idle > 0));
        add(Feature::Timers, !self.timers.is_empty());
        add(Feature::Tables, !self.tables.is_empty());
        add(Feature::Slots, !self.slots.is_empty());
        add(Feature::Notices, !self.notices.is_empty());
        add(Feature::Build, !self.templates.is_empty());
        add(Feature::Samples, !self.debug.samples.is_empty());
        add(Feature::Snapshots, !self.debug.points.is_empty());
        add(Feature::InternalEvents, self.internal_events > 0);
        add(Feature::Ranges, !self.ranges.is_empty());
        add(Feature::ReceiveBuffer, self.receive_buffer().is_some());
        add(Feature::Tallies, !self.tallies.is_empty());
        add(Feature::Turns, !self.turns.is_empty());
        add(Feature::Segments, !self.segments.is_empty());
        add(Feature::Blocks, !self.blocks.is_empty());
        add(Feature::Repeats, !self.repeats.is_empty());
        add(Feature::ImportedFormats, self.formats.iter().any(imported));
        add(Feature::InvariantCrc, self.formats.iter().any(|format| format.invariant_crc.is_some()));
        add(Feature::Expiry, expires);
        add(Feature::Hold, self.flow.hold);
        add(Feature::PassedPackets, matches!(self.other_packets, OtherPackets::Pass(_)));
        add(Feature::EvictOldest, self.flow.when_full == WhenFull::EvictOldest);
        add(Feature::EvictOldestIn, matches!(self.flow.when_full, WhenFull::EvictOldestIn(_)));
        add(Feature::EvictInTurn, matches!(self.flow.when_full, WhenFull::EvictInTurn(_)));
        let events = self.rows.iter().map(|row| row.event);
        for event in events.chain(self.preparations.iter().map(|preparation| preparation.event)) {
            add(
                Feature::Application,
                matches!(event, Event::Connect | Event::Data | Event::Close | Event::Abort | Event::Read),
            );
            add(Feature::ExpireEvent, event == Event::Expire);
            add(Feature::Icmp, event == Event::Icmp);
            add(Feature::SetEvent, event == Event::Set);
        }
        for operation in self.operation_lists().chain(self.blocks.iter().map(|block| &block.operations)).flatten() {
            let of_operands = operation.operands().into_iter().filter_map(of_operand);
            of_operation(operation).into_iter().chain(of_operands).for_each(|feature| add(feature, true));
        }
        for condition in &self.conditions {
            for feature in [&condition.left, &condition.right].into_iter().filter_map(of_operand) {
                add(feature, true);
            }
        }
        used.into_iter().collect()
    }
}

fn of_operation(operation: &Operation) -> Option<Feature> {
    match operation {
        Operation::Compute { operator, .. } => of_operator(*operator),
        Operation::MulDiv { .. } => Some(Feature::MulDiv),
        Operation::Element { .. } | Operation::SetElement { .. } => Some(Feature::Arrays),
        Operation::Resize { .. } => Some(Feature::Resize),
        Operation::Cut { .. } => Some(Feature::Segmentation),
        Operation::Reverse { .. } => Some(Feature::Reverse),
        Operation::RestartInstance => Some(Feature::Restart),
        Operation::MoveTimer { .. } => Some(Feature::MovedTimers),
        Operation::Query { query: Query::Timer { .. }, .. } => Some(Feature::TimerQueries),
        Operation::Query { query: Query::PortMtu { .. }, .. } => Some(Feature::PortMtu),
        Operation::KeepOptions { .. } => Some(Feature::KeepOptions),
        Operation::AppendData { .. }
        | Operation::ReleaseData { .. }
        | Operation::Deliver { .. }
        | Operation::DeliverHeld { .. } => Some(Feature::Application),
        Operation::Copy { to: PacketRef::Work, .. } => Some(Feature::Copy),
        Operation::Lookup { .. }
        | Operation::SetField { .. }
        | Operation::Copy { .. }
        | Operation::Build { .. }
        | Operation::Discard { .. }
        | Operation::Send { .. }
        | Operation::SetTimer { .. }
        | Operation::CancelTimer { .. }
        | Operation::Ask { .. }
        | Operation::Withdraw { .. }
        | Operation::Begin { .. }
        | Operation::Trim { .. }
        | Operation::AddRange { .. }
        | Operation::Hold { .. }
        | Operation::AppendSegment { .. }
        | Operation::SplitSegment { .. }
        | Operation::ChangeSegments { .. }
        | Operation::Query { .. }
        | Operation::Notify { .. }
        | Operation::DeleteInstance
        | Operation::Snapshot { .. }
        | Operation::Run { .. } => None,
    }
}

fn of_operator(operator: Operator) -> Option<Feature> {
    match operator {
        Operator::Mul => Some(Feature::Multiplication),
        Operator::Div | Operator::DivUnsigned | Operator::Rem | Operator::RemUnsigned => Some(Feature::Division),
        Operator::Hash => Some(Feature::Hash),
        Operator::Random => Some(Feature::Random),
        _ => None,
    }
}

fn of_operand(operand: &Operand) -> Option<Feature> {
    match operand {
        Operand::Environment(Environment::FlowFull) => Some(Feature::FlowFull),
        Operand::Environment(Environment::FlowHash) => Some(Feature::FlowHash),
        Operand::Environment(
            Environment::ApplicationAvailable | Environment::ApplicationClosed | Environment::ApplicationRoom,
        ) => Some(Feature::Application),
        Operand::Environment(Environment::ApplicationListening) => Some(Feature::Listening),
        _ => None,
    }
}
