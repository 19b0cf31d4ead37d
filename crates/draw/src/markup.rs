//! Text in markup.

/// Text as it may stand in HTML or SVG, between tags or in a quoted attribute.
pub fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML 1.0 has no way to write these.
            control if control.is_control() && !matches!(control, '\n' | '\t') => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
