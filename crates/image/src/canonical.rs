//! The one byte sequence that stands for an image, and its digest.

use crate::types::Image;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use sha2::{Digest, Sha256};
use std::fmt::Write;

impl Image {
    /// The canonical document: JSON with the members in the order of the types, one space of indentation a level and a
    /// newline at the end. Equal images have equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "));
        self.serialize(&mut serializer).expect("an image holds only what JSON can say, and a Vec takes all bytes");
        bytes.push(b'\n');
        bytes
    }

    /// The digest this image should carry: `sha256:` and the hexadecimal SHA-256 of the canonical document with an
    /// empty digest.
    pub fn computed_digest(&self) -> String {
        let unsealed = Image { digest: String::new(), ..self.clone() };
        let mut text = String::from("sha256:");
        for byte in Sha256::digest(unsealed.to_json()) {
            write!(text, "{byte:02x}").expect("a String takes all text");
        }
        text
    }

    /// Sets the features and the digest. To be done after the last change.
    pub fn seal(&mut self) {
        self.features = self.used_features();
        self.digest = self.computed_digest();
    }
}
