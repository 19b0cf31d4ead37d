//! Session-level service chains: agents that steer TCP sessions through middleboxes and change the chain while a session runs.
//!
//! Source: Zave, Ferreira, Zou, Morimoto, Rexford, *Dynamic Service Chaining with Dysco* (SIGCOMM 2017) and its later journal version.
//! Start reading at [`agent`]: what becomes of a packet. [`message`] is what agents tell each other, [`session`] what they know.
#![forbid(unsafe_code)]

pub mod agent;
pub mod config;
pub mod face;
pub mod icmp;
pub mod keys;
pub mod lock;
pub mod message;
pub mod paths;
pub mod rewrite;
pub mod segment;
pub mod session;
pub mod state;
pub mod table;
pub mod tuple;
pub mod windows;

pub use agent::{Agent, HOST, NETWORK};
pub use config::Config;
