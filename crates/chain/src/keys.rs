//! Message authentication: HMAC-SHA256 (RFC 2104) with a key for each ordered pair of agents, derived from the keys of a domain.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Bytes of an authentication code.
pub const MAC_LENGTH: usize = 32;
/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;
/// In front of what a pair's key is derived from.
const PAIR: &[u8] = b"weftwire chain pair 1";

/// A key of a domain. Up to two are live at once, so that keys can be exchanged without a gap.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its number in messages, from 1; 0 says that a message has no code.
    pub number: u8,
    /// The secret.
    pub secret: String,
}

/// Without the secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The keys by which one agent signs and checks. Without any, messages have no code and are taken so.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// These keys; the first one signs.
    pub fn new(keys: Vec<Key>) -> Keys {
        Keys(keys)
    }

    /// The number of the key that signs; 0 if messages are not signed.
    pub fn signing(&self) -> u8 {
        self.0.first().map_or(0, |key| key.number)
    }

    /// The code of a message between these agents by the key of this number; `None` if there is no such key.
    pub fn code(&self, number: u8, from: u16, to: u16, message: &[u8]) -> Option<[u8; MAC_LENGTH]> {
        let key = self.0.iter().find(|key| key.number == number)?;
        let pair = hmac(key.secret.as_bytes(), &[PAIR, &from.to_be_bytes(), &to.to_be_bytes()]);
        Some(hmac(&pair, &[message]))
    }

    /// Whether a message has the code that it should have: none if there are no keys.
    pub fn vouch(&self, number: u8, from: u16, to: u16, message: &[u8], code: &[u8]) -> bool {
        if self.0.is_empty() {
            return number == 0 && code.is_empty();
        }
        self.code(number, from, to, message).is_some_and(|expected| same(&expected, code))
    }
}

/// Whether two codes are the same, in a time that does not tell where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

/// HMAC-SHA256 of parts that lie behind each other (RFC 2104, section 2).
fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC_LENGTH] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..MAC_LENGTH].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_test_cases_of_rfc_4231() {
        // Cases 1, 2 and 6: a short key, a shorter one, and one that is longer than a block.
        let cases: [(&[u8], &[u8], &str); 3] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, data, code) in cases {
            assert_eq!(hexadecimal(&hmac(key, &[data])), code);
            let (front, behind) = data.split_at(3);
            assert_eq!(hexadecimal(&hmac(key, &[front, behind])), code);
        }
    }

    #[test]
    fn codes_are_of_a_pair_and_a_key() {
        let key = |number, secret: &str| Key { number, secret: secret.into() };
        let keys = Keys::new(vec![key(2, "new"), key(1, "old")]);
        assert_eq!(keys.signing(), 2);
        let code = keys.code(2, 7, 8, b"message").unwrap();
        assert!(keys.vouch(2, 7, 8, b"message", &code));
        assert!(Keys::new(vec![key(3, "next"), key(2, "new")]).vouch(2, 7, 8, b"message", &code));
        for (number, from, to, message) in [
            (1, 7, 8, &b"message"[..]),
            (2, 8, 7, b"message"),
            (2, 7, 9, b"message"),
            (2, 7, 8, b"massage"),
            (0, 7, 8, b"message"),
        ] {
            assert!(!keys.vouch(number, from, to, message, &code));
        }
        assert!(!keys.vouch(0, 7, 8, b"message", &[]));
        assert!(Keys::default().vouch(0, 7, 8, b"message", &[]));
        assert!(!Keys::default().vouch(2, 7, 8, b"message", &code));
    }
}
