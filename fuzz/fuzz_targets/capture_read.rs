#![no_main]

#[path = "../src/capture_read.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::capture_read(data));
