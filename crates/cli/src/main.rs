//! The command `undercroft`: parses arguments, calls the libraries, prints.
//!
//! Each subcommand is a file in `commands`: its arguments, whose comments are the help, and one
//! function. What they share is here: values of options ([`value`]), the choice of a volume inside
//! an image ([`image`]), work on an open volume ([`session`]), lines that are typed
//! ([`line_editor`]) and their words ([`words`]), the format of a new volume ([`format_options`]), words for numbers
//! ([`text`]), and what `--stats` prints ([`stats`]).
#![forbid(unsafe_code)]

mod commands;
mod format_options;
mod image;
mod line_editor;
mod output_file;
mod progress;
mod report;
mod session;
mod stats;
mod text;
mod value;
mod words;

use clap::Parser;
use commands::Cli;
use mimalloc::MiMalloc;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    undercroft_block::announce_fallback(|fallback| eprintln!("note: {fallback}"));
    match commands::run(&Cli::parse()) {
        Ok(outcome) => outcome.into(),
        Err(error) => report::failure(&error),
    }
}
