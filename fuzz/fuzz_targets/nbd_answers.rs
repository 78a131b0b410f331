//! `cargo fuzz run nbd_answers`: see `undercroft_fuzz_targets::TARGETS`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undercroft_fuzz_targets::run("nbd_answers", input));
