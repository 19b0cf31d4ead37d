//! Many flows in one file: what they are and how they were got, then one state behind the other. A reader can stop
//! behind any of them.

use super::{StateError, header};
use weftwire_image::layout::WORD;

/// What a file of states begins with.
pub const STATES_MAGIC: [u8; 8] = *b"WEFTLIVE";

/// What stands in front of the states.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StatesHeader {
    /// Whether the flows were taken out of their function: nobody else has them. Else they are copies.
    pub taken: bool,
}

impl StatesHeader {
    /// Its bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        [STATES_MAGIC, u64::from(self.taken).to_le_bytes()].concat()
    }
}

/// The states of a file, each as its own bytes, in order. An iterator that has given an error ends.
///
/// # Errors
/// The bytes are no file of states; for each state, that it is cut off or no state.
pub fn states(bytes: &[u8]) -> Result<(StatesHeader, impl Iterator<Item = Result<&[u8], StateError>>), StateError> {
    let Some((head, rest)) = bytes.split_at_checked(2 * WORD).filter(|(head, _)| head[..WORD] == STATES_MAGIC) else {
        return Err(StateError::Magic { what: "a file of flows" });
    };
    let taken = match head[WORD..] {
        [taken @ (0 | 1), 0, 0, 0, 0, 0, 0, 0] => taken == 1,
        _ => return Err(StateError::value("taken", "something else", "0 or 1")),
    };
    let mut rest = Some(rest).filter(|rest| !rest.is_empty());
    let each = std::iter::from_fn(move || {
        let bytes = rest.take()?;
        let whole = header(bytes).and_then(|length| {
            let missing = length.saturating_sub(bytes.len());
            bytes.split_at_checked(length).ok_or(StateError::Truncated { field: "length".into(), missing })
        });
        Some(whole.map(|(state, behind)| {
            rest = Some(behind).filter(|behind| !behind.is_empty());
            state
        }))
    });
    Ok((StatesHeader { taken }, each))
}
