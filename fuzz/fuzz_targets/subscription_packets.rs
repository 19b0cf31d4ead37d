#![no_main]

#[path = "../src/subscription_packets.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::subscription_packets(data));
