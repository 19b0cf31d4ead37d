//! The published JSON Schema of the document.

use crate::types::Image;

/// JSON Schema (draft 2020-12) of an image, made from the types. It says the form; the verifier checks the rest.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Image).to_value()
}
