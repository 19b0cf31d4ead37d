//! Faults as text of a network's file.

use super::Fault;
use weftwire_network::Network;

/// To do.
pub fn to_toml(_faults: &[Fault], _network: &Network) -> String {
    String::new()
}
