//! The body of the target `xl_compile`, apart from the others: only what may depend on the compiler includes it.

use weftwire_lang::{Dialect, UNVERIFIED, compile};
use weftwire_text::Severity;

/// XL text; of the published dialect if the first byte is odd. It comes to an error, or to an image that verifies.
pub fn xl_compile(data: &[u8]) {
    let [choice, text @ ..] = data else { return };
    let dialect = if choice & 1 == 0 { Dialect::Xl } else { Dialect::Xtra };
    let text = String::from_utf8_lossy(text);
    let compilation = compile("program", dialect, &&*text);
    let failed = compilation.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(compilation.image.is_none(), failed, "an image or an error");
    // The compiler verifies what it made; each fault of a program has words of its own.
    let unverified = compilation.diagnostics.iter().find(|found| found.message.starts_with(UNVERIFIED));
    assert!(unverified.is_none(), "{unverified:?}");
    if let Some(image) = compilation.image {
        assert!(image.verify().is_ok(), "the compiler's images verify");
    }
}
