//! Fenced blocks of Markdown pages, for tests that what a page shows is true.

/// A page's fenced block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// What stands behind the opening fence.
    pub info: String,
    /// The comment in front of it, without its signs.
    pub note: String,
    /// What it holds, with the end of its last line.
    pub text: String,
    /// Line of the opening fence, from 1.
    pub line: usize,
}

impl Block {
    /// The block's language, and what stands behind a comma.
    pub fn language(&self) -> (&str, &str) {
        self.info.split_once(',').unwrap_or((&self.info, ""))
    }
}

/// A page's fenced blocks, in order.
///
/// # Panics
///
/// If a block does not end.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut open, mut note) = (None::<Block>, String::new());
    for (index, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(info)) => {
                let note = std::mem::take(&mut note);
                open = Some(Block { info: info.to_owned(), note, text: String::new(), line: index + 1 });
            }
            (None, None) if !line.is_empty() => {
                note = line.strip_prefix("<!-- ").and_then(|it| it.strip_suffix(" -->")).unwrap_or_default().to_owned();
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "the block of line {} does not end", open.map_or(0, |block| block.line));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_what_stands_before_and_behind_their_fence() {
        let page =
            "words\n```xl,error\na\n\nb\n```\n<!-- output -->\n\n```text\n```\n<!-- lost -->\nwords\n```\nc\n```\n";
        let found = blocks(page);
        let parts: Vec<_> = found.iter().map(|it| (it.language(), &*it.note, &*it.text, it.line)).collect();
        assert_eq!(
            parts,
            [(("xl", "error"), "", "a\n\nb\n", 2), (("text", ""), "output", "", 9), (("", ""), "", "c\n", 13)]
        );
    }

    #[test]
    #[should_panic(expected = "the block of line 2 does not end")]
    fn a_block_ends() {
        blocks("\n```sh\ntrue\n");
    }
}
