//! Numbers as pictures and pages write them.

/// Seconds since `start` as pictures show them: `0.012345`.
pub fn seconds(nanoseconds: i64) -> String {
    let micros = nanoseconds / 1_000;
    format!("{}{}.{:06}", if micros < 0 { "-" } else { "" }, (micros / 1_000_000).abs(), (micros % 1_000_000).abs())
}

/// A number of bytes with thin digits groups: `1 234 567`.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}
