//! Why a document is not an image.

use std::fmt;

/// Why a document was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImageError {
    /// The document is longer than any image may be.
    #[error("the document has {bytes} bytes; an image has at most {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit ([`crate::limits::MAX_DOCUMENT`]).
        limit: usize,
    },
    /// The document is not JSON, or not of the image's form. The message names line and column.
    #[error("not an image document: {0}")]
    Form(String),
    /// The document is an image of another version.
    #[error(
        "an image of version {found}, and this release runs version {version}: compile its program again with `weft compile`",
        version = crate::IMAGE_VERSION
    )]
    Version {
        /// Its version.
        found: u64,
    },
    /// The image needs what no engine of this release has.
    #[error("the image needs {}, which this release does not have: run it with the release that compiled it, or a newer one", quoted(.names))]
    UnknownFeatures {
        /// The names of the features.
        names: Vec<String>,
    },
    /// The document has the right form, but says something impossible.
    #[error("{0}")]
    Invalid(Findings),
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<String>>().join(", ")
}

/// Everything that is wrong with an image, in document order; at most [`crate::limits::MAX_FINDINGS`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// The findings.
    pub list: Vec<Finding>,
    /// How many more there are than the list holds.
    pub more: usize,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, finding) in self.list.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            write!(f, "{separator}{finding}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Where in the document, e.g. `rows[12].operations[3].register`.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.path, self.problem, self.remedy)
    }
}
