#![no_main]

#[path = "../../crates/calendar/tests/steps/mod.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|data: &[u8]| steps::calendar(data));
