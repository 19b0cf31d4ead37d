//! Routing, and static routes.

use super::names::Index;
use super::{MOST_ROUTES, Reader};
use crate::description::values::Names;
use crate::description::{self, Cost, File};
use crate::model::{Multipath, Network, NodeIndex, NodeKind, Routing, StaticRoute};
use crate::routing::Routes;
use std::sync::Arc;
use std::time::Duration;

impl Reader<'_> {
    /// How packets find their ways; static routes are still to come.
    pub fn routing(&mut self, file: &File) -> Routing {
        let mut routing = Routing::default();
        let Some(given) = &file.routing else { return routing };
        if let Some(multipath) = given.multipath {
            routing.multipath = match multipath {
                description::Multipath::Flow => Multipath::Flow,
                description::Multipath::Packet => Multipath::Packet,
                description::Multipath::Single => Multipath::Single,
            };
        }
        routing.by_delay = given.cost != Some(Cost::Metric);
        if let Some(convergence) = given.convergence {
            routing.convergence = convergence.0.map(|after| Duration::from_nanos(after.unsigned_abs()));
        }
        routing
    }

    /// All static routes, spelled out.
    pub fn static_routes(&mut self, file: &File, network: &Network, names: &Index) -> Vec<StaticRoute> {
        let given = file.routes.as_deref().unwrap_or_default();
        let mut all = Vec::new();
        if given.is_empty() {
            return all;
        }
        let routes = Routes::new(network);
        for route in given {
            // A pattern leaves out what has no address; who names such a node is told.
            let mut named = |given: &Names| {
                let mut found: Vec<NodeIndex> = Vec::new();
                for word in &given.0 {
                    let nodes = names.matching("node", word, self.problems).into_iter();
                    let nodes = nodes.map(|node| NodeIndex(node as u32));
                    found.extend(nodes.filter(|node| !word.text.contains('*') || network.node(*node).is_addressed()));
                }
                found
            };
            let (nodes, to, via) = (named(&route.node), named(&route.to), named(&route.via));
            if all.len().saturating_add(nodes.len().saturating_mul(to.len())) > MOST_ROUTES {
                self.problems.error(route.places.span, format!("there are more than {MOST_ROUTES} static routes"));
                return all;
            }
            let via: Arc<[NodeIndex]> = via.into();
            for node in nodes {
                if self.fits(route, network, &routes, node, &to, &via) {
                    let others = to.iter().filter(|to| **to != node);
                    all.extend(others.map(|to| StaticRoute { node, to: *to, via: via.clone() }));
                }
            }
        }
        all
    }

    /// Sees that a node can have a route; `false` after an error.
    fn fits(
        &mut self,
        route: &description::Route,
        network: &Network,
        routes: &Routes,
        node: NodeIndex,
        to: &[NodeIndex],
        via: &[NodeIndex],
    ) -> bool {
        let name = |node: NodeIndex| &network.node(node).name;
        let no_address = |node: &NodeIndex| !network.node(*node).is_addressed();
        let neighbours = routes.neighbours(node);
        let wrong = if no_address(&node) {
            let help = "hosts and routers have routes";
            Some(("node", format!("`{}` passes frames on and has no routes", name(node)), help))
        } else if let Some(to) = to.iter().copied().find(no_address) {
            Some(("to", format!("`{}` has no address, so no packet goes there", name(to)), "name a host or router"))
        } else if let Some(via) = via.iter().find(|via| neighbours.iter().all(|hop| hop.to.node != **via)) {
            let message = format!("`{}` is no neighbour of `{}`", name(*via), name(node));
            Some(("via", message, "a neighbour is at a link of the node, or behind switches at it"))
        } else {
            let router = |node: NodeIndex| matches!(network.node(node).kind, NodeKind::Router);
            let others = |via: NodeIndex| to.iter().any(|to| *to != via && *to != node);
            let dead_end = via.iter().copied().find(|via| !router(*via) && others(*via));
            dead_end.map(|via| {
                let help = "only routers do";
                ("via", format!("`{}` passes no packets on", name(via)), help)
            })
        };
        let fits = wrong.is_none();
        if let Some((key, message, help)) = wrong {
            self.problems.error_help(route.places.value(key), message, help);
        }
        fits
    }
}
