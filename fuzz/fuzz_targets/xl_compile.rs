#![no_main]

#[path = "../src/xl_compile.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::xl_compile(data));
