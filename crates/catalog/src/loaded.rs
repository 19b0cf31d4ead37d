//! Functions that are loaded and not yet started.

use crate::CatalogError;
use std::sync::Arc;
use weftwire_core::{Function, Ports};
use weftwire_engine::{EngineOptions, make};
use weftwire_image::{Event, VerifiedImage};
use weftwire_network::memory::FRAME;
use weftwire_subscribe::Compiler;
use weftwire_switch::SubscriptionSwitch;
use weftwire_switch::application::Registry;

/// Bytes of an instance with its places in the flow table, without registers and packets.
const INSTANCE: u64 = 512;

/// A function that is loaded and not yet started.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// A machine.
    Machine(Box<VerifiedImage>),
    /// A switch that forwards by rules about messages.
    Subscriptions {
        /// The name of its file of rules.
        name: String,
        /// The digest of its rules and formats.
        digest: String,
        /// Its rules, compiled.
        compiler: Arc<Compiler>,
    },
}

impl Loaded {
    /// The function's own name.
    pub fn name(&self) -> &str {
        match self {
            Loaded::Machine(image) => &image.name,
            Loaded::Subscriptions { name, .. } => name,
        }
    }

    /// Whether it does anything for an application that opens a connection and writes on it.
    pub fn opens_connections(&self) -> bool {
        match self {
            Loaded::Machine(image) => image.rows.iter().any(|row| matches!(row.event, Event::Connect | Event::Data)),
            Loaded::Subscriptions { .. } => false,
        }
    }

    /// Bytes that its flow table takes if it fills up, as far as the image tells: buffers of applications come on top.
    pub fn flow_table(&self) -> u64 {
        match self {
            Loaded::Machine(image) => {
                let each = INSTANCE + 8 * image.registers.len() as u64 + FRAME * image.slots.len() as u64;
                u64::from(image.flow.max).saturating_mul(each)
            }
            Loaded::Subscriptions { .. } => 0,
        }
    }

    /// The digest of what it is made from.
    pub fn digest(&self) -> &str {
        match self {
            Loaded::Machine(image) => &image.digest,
            Loaded::Subscriptions { digest, .. } => digest,
        }
    }

    /// How many flows its table may hold.
    pub fn most_flows(&self) -> u64 {
        match self {
            Loaded::Machine(image) => image.flow.max.into(),
            Loaded::Subscriptions { .. } => 0,
        }
    }

    /// Starts it on these ports; a machine, with the named engine. Without a key one comes from the seed.
    ///
    /// # Errors
    /// There is no such engine, or the switch cannot carry an action out.
    pub fn start(
        &self,
        engine: &str,
        ports: &Ports,
        seed: u64,
        key: Option<[u64; 2]>,
    ) -> Result<Box<dyn Function>, CatalogError> {
        self.start_with(engine, ports, engine_options(seed, key))
    }

    /// Starts it with all that there is to choose for an engine.
    ///
    /// # Errors
    /// As of [`Loaded::start`].
    pub fn start_with(
        &self,
        engine: &str,
        ports: &Ports,
        options: EngineOptions,
    ) -> Result<Box<dyn Function>, CatalogError> {
        let image = match self {
            Loaded::Machine(image) => VerifiedImage::clone(image),
            Loaded::Subscriptions { compiler, .. } => {
                let registry = Registry::built_in();
                return Ok(Box::new(SubscriptionSwitch::with_actions(compiler, ports.clone(), registry)?));
            }
        };
        Ok(make(engine, image, ports.clone(), options)?)
    }
}

/// What is chosen for an engine with this seed and this key, or one from the seed.
pub fn engine_options(seed: u64, key: Option<[u64; 2]>) -> EngineOptions {
    let hash_key = key.map(|[low, high]| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        bytes
    });
    EngineOptions { seed, hash_key, ..EngineOptions::default() }
}
