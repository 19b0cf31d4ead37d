#![no_main]

#[path = "../src/pace_formula.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::pace_formula(data));
