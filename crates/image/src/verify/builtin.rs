//! The built-in header formats as the image writes them.

use crate::types::Format;

/// The built-in definition of the format of this name.
pub(super) fn format(_name: &str) -> Option<Format> {
    None
}
pub(super) fn names() -> Vec<&'static str> {
    Vec::new()
}
pub(super) fn is_header(_name: &str) -> bool {
    false
}
