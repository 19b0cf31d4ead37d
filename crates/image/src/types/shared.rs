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
