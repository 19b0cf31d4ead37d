#![no_main]

#[path = "../src/chain_agent.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::chain_agent(data));
