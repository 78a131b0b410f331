//! `cargo fuzz run disk_formats`: see `undercroft_fuzz_targets::TARGETS`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undercroft_fuzz_targets::run("disk_formats", input));
