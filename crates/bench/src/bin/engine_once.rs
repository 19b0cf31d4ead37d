//! `engine-once CASE PACKETS`: runs one of the engine's cases and measures nothing, for a tool that counts instructions. A
//! program of its own, so that little has to be built for it.

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [case, packets] = &words[..] else { bail!("usage: engine-once CASE PACKETS") };
    weftwire_bench::engine::once(case, packets.parse()?)
}
