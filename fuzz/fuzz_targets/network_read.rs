#![no_main]

#[path = "../src/network_read.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::network_read(data));
