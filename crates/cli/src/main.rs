//! The command `undercroft`: parses arguments, calls the libraries, prints.
//!
//! Each subcommand is a file in `commands`: its arguments, whose comments are the help, and one
//! function. Shared parts are here: values of options ([`value`], [`owner`], [`rule_options`]), the
//! choice of a volume inside an image ([`image`]), work on an open volume ([`session`]), lines that
//! are typed ([`line_editor`]) and their words ([`words`]), the format of a new volume
//! ([`format_options`]), words for numbers ([`text`]), the output of `--stats` ([`stats`]),
//! standard output ([`standard_output`]), and how a run ends ([`report`], [`failure`]).

mod commands;
mod failure;
mod format_options;
mod image;
mod line_editor;
mod output_file;
mod owner;
mod progress;
mod report;
mod rule_options;
mod session;
mod standard_output;
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
    let mut options = std::env::args_os().take_while(|argument| argument != "--");
    let json = options.any(|argument| argument == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report::unparsed(&error, json),
    };
    match commands::run(&cli) {
        Ok(outcome) => outcome.into(),
        Err(error) => report::failure(&error, json),
    }
}
