//! The form of a vector.

use crate::bytes::from_hex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use weftwire_core::{LinkType, Port, Ports};
use weftwire_image::{Image, ImageError, VerifiedImage};

/// A test vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The rules of the semantics page that it tests.
    pub rules: Vec<String>,
    /// What happens, in a sentence.
    pub about: String,
    pub(crate) image: Image,
    pub(crate) document: Document,
}

/// Why a file is no vector.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VectorError {
    /// It has another form.
    #[error("not a test vector: {0}")]
    Form(String),
    /// Its image has another form.
    #[error("the image is none: {0}")]
    Image(String),
}

/// What an engine is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What it runs.
    pub image: VerifiedImage,
    /// Its ports.
    pub ports: Ports,
    /// Where random numbers come from.
    pub seed: u64,
    /// Secret key, if one is given.
    pub hash_key: Option<[u8; 16]>,
    /// What it has room for.
    pub limits: Limits,
}

/// What an engine has room for; `None`: as much as memory holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Longest frame in bytes.
    pub frame: Option<usize>,
    /// Most bytes of headers.
    pub headers: Option<usize>,
    /// Most packets stored.
    pub packets: Option<usize>,
    /// Most pending settings of timers.
    pub timers: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    rules: Vec<String>,
    about: String,
    image: Value,
    #[serde(default)]
    ports: BTreeMap<u16, LinkType>,
    #[serde(default)]
    seed: u64,
    hash_key: Option<String>,
    #[serde(default)]
    limits: Limits,
    /// Kinds of trace records that are compared.
    #[serde(default)]
    pub(crate) debug: Vec<String>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) expected: Expected,
}

/// Something that happens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    #[serde(default)]
    pub(crate) at: i64,
    pub(crate) flow: Option<String>,
    pub(crate) frame: Option<String>,
    #[serde(default)]
    pub(crate) port: u16,
    pub(crate) checksum: Option<String>,
    pub(crate) connect: Option<Ends>,
    pub(crate) write: Option<Value>,
    pub(crate) accepted: Option<usize>,
    #[serde(default)]
    pub(crate) close: bool,
    #[serde(default)]
    pub(crate) abort: bool,
    /// An address and a port, or null.
    pub(crate) listen: Option<(Option<std::net::IpAddr>, Option<u16>)>,
    /// The same, taken back.
    pub(crate) unlisten: Option<(Option<std::net::IpAddr>, Option<u16>)>,
    #[serde(default)]
    pub(crate) accept: bool,
    pub(crate) consumed: Option<usize>,
    /// A port, and most bytes of a packet that can leave by it; `None`: the port is gone.
    #[serde(default)]
    pub(crate) mtu: Option<(u16, Option<u32>)>,
    #[serde(default)]
    pub(crate) fire: bool,
    pub(crate) set: Option<Change>,
    #[serde(default)]
    pub(crate) delete: bool,
    pub(crate) replace: Option<Value>,
    /// Names of registers and initial values, as they are written.
    pub(crate) parameters: Option<Vec<(String, String)>>,
    pub(crate) refused: Option<String>,
}

/// The ends of a flow that is opened.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ends {
    pub(crate) protocol: String,
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) local_mac: String,
    pub(crate) remote_mac: String,
}

/// A register changed from outside.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub(crate) register: String,
    pub(crate) value: i64,
}

/// What has to come of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Expected {
    /// Where the verifier finds fault with the image, if it does.
    pub(crate) refused: Option<String>,
    pub(crate) sent: Option<Value>,
    pub(crate) partial: Vec<usize>,
    /// Which of the frames stand for segments of so many bytes.
    pub(crate) cut: Vec<(usize, u16)>,
    pub(crate) flows: BTreeMap<String, Vec<Value>>,
    pub(crate) opened: Option<BTreeMap<String, Value>>,
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) counters: Map<String, Value>,
    #[serde(rename = "final")]
    pub(crate) at_end: BTreeMap<String, Map<String, Value>>,
    pub(crate) live: Option<Vec<String>>,
    #[serde(deserialize_with = "present")]
    pub(crate) due: Option<Option<i64>>,
}

/// A member that may be `null`, which is something else than not there.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Vector {
    /// Reads a file. `base` is the document that images of vectors begin with.
    ///
    /// # Errors
    /// See [`VectorError`].
    pub fn read(base: &[u8], file: &[u8]) -> Result<Vector, VectorError> {
        let form = |error: serde_json::Error| VectorError::Form(error.to_string());
        let mut image: Value = serde_json::from_slice(base).map_err(form)?;
        let document: Document = serde_json::from_slice(file).map_err(form)?;
        merge(&mut image, &document.image);
        let mut image: Image = serde_json::from_value(image).map_err(|error| VectorError::Image(error.to_string()))?;
        image.seal();
        if document.hash_key.as_deref().is_some_and(|key| from_hex(key).is_none_or(|key| key.len() != 16)) {
            return Err(VectorError::Form("`hash_key` is not 16 bytes in hexadecimal".into()));
        }
        Ok(Vector { rules: document.rules.clone(), about: document.about.clone(), image, document })
    }

    /// The canonical document of the image with a patch to it.
    pub(crate) fn patched(&self, patch: &Value) -> Result<String, String> {
        let mut image = serde_json::to_value(&self.image).map_err(|error| error.to_string())?;
        merge(&mut image, patch);
        let mut image: Image = serde_json::from_value(image).map_err(|error| error.to_string())?;
        image.seal();
        String::from_utf8(image.to_json()).map_err(|error| error.to_string())
    }

    /// What an engine is made with.
    pub(crate) fn setup(&self) -> Result<Setup, ImageError> {
        let Document { ports, seed, hash_key, limits, .. } = &self.document;
        let standard = [(1, LinkType::Ethernet), (2, LinkType::Ethernet)];
        let ports = if ports.is_empty() { standard.into() } else { ports.clone() };
        Ok(Setup {
            image: self.image.clone().verify()?,
            ports: Ports::new(ports.into_iter().map(|(number, link)| (Port(number), link))),
            seed: *seed,
            hash_key: hash_key.as_deref().and_then(from_hex).and_then(|key| key.try_into().ok()),
            limits: *limits,
        })
    }
}

/// JSON Merge Patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(members) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_go_into_objects_and_replace_lists() {
        let mut target = json!({ "a": { "b": 1, "c": [1, 2] }, "d": 3 });
        merge(&mut target, &json!({ "a": { "c": [3], "e": { "f": null, "g": 4 } }, "d": null }));
        assert_eq!(target, json!({ "a": { "b": 1, "c": [3], "e": { "g": 4 } } }));
    }

    #[test]
    fn what_is_no_vector_is_told() {
        let read = |base: &str, file: &str| Vector::read(base.as_bytes(), file.as_bytes()).map(|_| ()).unwrap_err();
        assert!(matches!(read("{}", "{}"), VectorError::Form(_)));
        let file = json!({ "rules": [], "about": "", "image": {}, "inputs": [], "expected": {} });
        assert!(matches!(read("{}", &file.to_string()), VectorError::Image(_)));
    }
}
