//! What all flows of a function share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Turns that flows wait for, one at a time for the whole function (semantics, rules T1 to T7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// Its name.
    pub name: String,
    /// Most flows that wait at once.
    pub most: u32,
}

/// How many flows are in some states, and how many settings of some timers are pending, in all flows together (rule N1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Its name.
    pub name: String,
    /// The states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<u16>,
    /// The timers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<u8>,
}
