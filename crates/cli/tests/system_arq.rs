//! The two ends of the ARQ transport, those of the steps that go on from there, and those of messages that the receiver grants, on two machines
//! with a router between them that loses every tenth packet.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests start programs")]

mod support;

use anyhow::{Context as _, Result};
use support::route::{Route, Transfer};
use weftwire_testbed::skip_unless_root;

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn a_megabyte_arrives_through_heavy_loss() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft"]) else { return Ok(()) };
    Route::build()?.brings(&Transfer::new("arq-sender.xl", "arq-receiver.xl", 1_000_000))
}

/// The steps of the chapter "Write your own transport".
#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn each_step_to_a_transport_of_ones_own_brings_all() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft"]) else { return Ok(()) };
    let path = Route::build()?;
    for (sender, receiver) in
        [("wait", "in-order"), ("window", "in-order"), ("selective", "any-order"), ("rate", "any-order")]
    {
        let [sender, receiver] = [sender, receiver].map(|name| format!("transports/own/{name}.xl"));
        path.brings(&Transfer::new(&sender, &receiver, 150_000)).with_context(|| sender.clone())?;
    }
    Ok(())
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn a_granted_message_arrives_through_heavy_loss() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nft"]) else { return Ok(()) };
    let (sender, receiver) = ("transports/messages/sender.xl", "transports/messages/receiver.xl");
    Route::build()?.brings(&Transfer::new(sender, receiver, 1_000_000))
}
