#![no_main]

#[path = "../src/kafka_bridge.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::kafka_bridge(data));
