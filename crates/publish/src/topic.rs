//! Names of topics.

use std::fmt;
use std::str::FromStr;

/// The longest name.
pub const MAX_LENGTH: usize = 32;

/// What a field of the header holds of a name.
const HALF: usize = 16;

/// A name of 1 to [`MAX_LENGTH`] characters `A` to `Z`, `a` to `z`, `0` to `9`, `.`, `_` and `-`, as Kafka allows them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic {
    /// Padded with spaces.
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

/// A name that no topic may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a topic: 1 to {MAX_LENGTH} letters, digits, dots, underscores and hyphens, not `.` or `..`"
)]
pub struct BadTopic(
    /// The name, cut short if it is long.
    pub String,
);

impl Topic {
    /// The topic of this name.
    ///
    /// # Errors
    /// [`BadTopic`].
    pub fn new(name: &str) -> Result<Topic, BadTopic> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits = (1..=MAX_LENGTH).contains(&name.len());
        if !fits || !name.bytes().all(allowed) || [".", ".."].contains(&name) {
            return Err(BadTopic(name.chars().take(2 * MAX_LENGTH).collect()));
        }
        let mut bytes = [b' '; MAX_LENGTH];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Topic { bytes, length: name.len() as u8 })
    }

    /// The topic in a header: the name, padded with spaces. `None` if it is no name.
    pub fn from_padded(bytes: [u8; MAX_LENGTH]) -> Option<Topic> {
        let length = bytes.iter().rposition(|byte| *byte != b' ')? + 1;
        Topic::new(std::str::from_utf8(&bytes[..length]).ok()?).ok()
    }

    /// The name, padded with spaces.
    pub fn padded(&self) -> &[u8; MAX_LENGTH] {
        &self.bytes
    }

    /// The name.
    pub fn name(&self) -> &str {
        // It is ASCII.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }

    /// The filter, as rules have it, for all messages of the topic.
    pub fn filter(&self) -> String {
        let name = self.name();
        if name.len() < HALF {
            return format!("publish.topic == \"{name}\"");
        }
        let (head, rest) = name.split_at(HALF);
        format!("publish.topic == \"{head}\" and publish.topic_rest == \"{rest}\"")
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.name())
    }
}

impl FromStr for Topic {
    type Err = BadTopic;

    fn from_str(name: &str) -> Result<Topic, BadTopic> {
        Topic::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let long = "a".repeat(MAX_LENGTH);
        for name in ["a", "orders.eu-1_X", "...", &long] {
            let topic = Topic::new(name).unwrap();
            assert_eq!(topic.name(), name);
            assert_eq!(Topic::from_padded(*topic.padded()), Some(topic));
        }
        for name in ["", ".", "..", "a b", "a/b", "ä", &format!("{long}a")] {
            assert!(Topic::new(name).is_err(), "{name}");
        }
        assert_eq!(Topic::from_padded([b' '; MAX_LENGTH]), None);
        assert_eq!(Topic::from_padded([0xff; MAX_LENGTH]), None);
    }
}
