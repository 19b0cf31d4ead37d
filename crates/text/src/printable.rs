//! Text from elsewhere on a terminal.
//!
//! What a peer, a file or a packet says may hold control characters, and a terminal obeys those: they move the cursor,
//! change what was printed before, or type for the user. So whatever comes from outside goes through one of these
//! functions before it is printed.

use std::borrow::Cow;
use std::fmt::Write;

/// The text on one line, with all that a terminal would not simply show as a character escaped, e.g. `\u{1b}`: control
/// characters, line and paragraph separators, and those that reverse the direction of writing.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmless)
}

/// Like [`printable`], for texts of several lines: line breaks and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| matches!(letter, '\n' | '\t') || is_harmless(letter))
}

/// Like [`printable_lines`], for a JSON document, which stays the same document.
pub fn printable_json(document: &str) -> Cow<'_, str> {
    // Within strings JSON has escaped others already, and elsewhere it has none.
    let stays = |letter| letter == '\n' || is_harmless(letter);
    if document.chars().all(stays) {
        return Cow::Borrowed(document);
    }
    let mut safe = String::with_capacity(document.len() + 16);
    for letter in document.chars() {
        match stays(letter) {
            true => safe.push(letter),
            // All of them are in the basic plane.
            false => drop(write!(safe, "\\u{:04x}", u32::from(letter))),
        }
    }
    Cow::Owned(safe)
}

fn is_harmless(letter: char) -> bool {
    let directs =
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !directs && letter != '\u{feff}'
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if stays(letter) {
            safe.push(letter);
        } else {
            // Writing to a string never fails.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(letter));
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable("\x1b[2Jgone\r\n\t\x7f"), "\\u{1b}[2Jgone\\u{d}\\u{a}\\u{9}\\u{7f}");
        // C1: CSI in one character. Right-to-left override. Line separator.
        assert_eq!(printable("\u{9b}31m \u{202e}txt\u{2028}"), "\\u{9b}31m \\u{202e}txt\\u{2028}");
        assert_eq!(printable_lines("one\n\ttwo\r\x07"), "one\n\ttwo\\u{d}\\u{7}");
    }

    #[test]
    fn a_json_document_stays_the_same() {
        assert_eq!(
            printable_json("{\n  \"a\": \"\u{9b}1m\u{202e}\u{7f}ö\"\n}"),
            "{\n  \"a\": \"\\u009b1m\\u202e\\u007fö\"\n}"
        );
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in ["", "10.0.0.1:4000 <-> [fd00::1]:80 tcp", "größer als 5 µs — ja", "日本"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(printable_lines(text), Cow::Borrowed(same) if same == text));
        }
    }
}
