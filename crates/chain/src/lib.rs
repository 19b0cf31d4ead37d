//! Session-level service chains: agents that steer TCP sessions through middleboxes and change the chain while a session runs.
//!
//! Source: Zave, Ferreira, Zou, Morimoto, Rexford, *Dynamic Service Chaining with Dysco* (SIGCOMM 2017) and its later journal version.
#![forbid(unsafe_code)]

pub mod lock;
