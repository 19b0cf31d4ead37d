#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weftwire_fuzz::packet_parse(data));
