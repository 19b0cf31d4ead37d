#![no_main]

#[path = "../../crates/engine/tests/support/image_load.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::image_load(data));
