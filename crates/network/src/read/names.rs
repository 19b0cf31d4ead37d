//! Names, and patterns of names.

use super::problems::Problems;
use crate::description::values::{Names, Word};
use std::collections::BTreeMap;

/// Indices of things by name.
#[derive(Default)]
pub struct Index {
    /// The names, in order.
    pub names: Vec<String>,
    by_name: BTreeMap<String, usize>,
}

impl Index {
    /// Adds a name; `false` if it is taken.
    pub fn add(&mut self, name: &str) -> bool {
        let free = !self.by_name.contains_key(name);
        if free {
            self.by_name.insert(name.to_owned(), self.names.len());
            self.names.push(name.to_owned());
        }
        free
    }

    /// The index of a name.
    pub fn get(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// All that a pattern matches, in order; an error if it is none.
    pub fn matching(&self, what: &str, pattern: &Word, problems: &mut Problems) -> Vec<usize> {
        let text = pattern.text.as_str();
        let found: Vec<usize> = match text.contains('*') {
            true => (0..self.names.len()).filter(|index| matches(text, &self.names[*index])).collect(),
            false => self.get(text).into_iter().collect(),
        };
        if found.is_empty() {
            problems.unknown(pattern.span, what, text, self.names.iter().map(String::as_str).take(1_000));
        }
        found
    }

    /// All that patterns match, each once, in the order of the patterns.
    pub fn all_matching(&self, what: &str, patterns: &Names, problems: &mut Problems) -> Vec<usize> {
        let mut seen = std::collections::BTreeSet::new();
        let found = patterns.0.iter().flat_map(|pattern| self.matching(what, pattern, problems));
        found.filter(|index| seen.insert(*index)).collect()
    }
}

/// Whether a name fits a pattern in which `*` stands for any letters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').map_or(("", rest), |(middle, last)| (middle, last));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

/// Sees that a name is letters, digits, `-` and `_`, and not too long.
pub fn check_name(word: &Word, what: &str, longest: usize, problems: &mut Problems) -> bool {
    let good = !word.text.is_empty()
        && word.text.len() <= longest
        && word.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !good {
        let help = format!("letters, digits, `-` and `_`, at most {longest}");
        problems.error_help(word.span, format!("`{}` can't be the name of a {what}", word.text), help);
    }
    good
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_any_letters() {
        for (pattern, name, fits) in [
            ("left*", "left12", true),
            ("left*", "right1", false),
            ("*", "", true),
            ("pod*-host*", "pod1-host2", true),
            ("pod*-host*", "pod1-edge2", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*b*b*", "abcb", true),
            ("*b*b*", "abc", false),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
