//! `cargo fuzz run open_and_walk`: see `undercroft_fuzz_targets::TARGETS`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undercroft_fuzz_targets::run("open_and_walk", input));
