#![no_main]

#[path = "../../crates/engine/tests/support/flow_state.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    body::flow_state(data);
});
