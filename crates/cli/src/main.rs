//! The command `undercroft`: parses arguments, calls the libraries, prints.
//!
//! Each subcommand is a module in `commands`: its arguments, whose comments are the help, and one
//! function. Shared parts are here: values of options ([`value`], [`owner`]), the choice of a volume
//! inside an image ([`image`]), any tree ([`tree`]), work on an open volume ([`session`]), the format of
//! a new volume ([`format_options`]), a disk around it ([`disk_options`]), words for numbers
//! ([`text`]), the output of `--stats` ([`stats`]), standard output ([`standard_output`]), the forms in
//! which `mount(8)` and `fsck(8)` call the command ([`invocation`]), and options of mkfs.xfs ([`short_mkfs`]), arguments that are put together
//! when they are needed ([`deferred`]), words of other tools ([`tips`]), and how a run ends ([`report`], [`failure`], [`remedy`]).

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod child;
mod deferred;
mod failure;
mod invocation;
mod mounts;
mod output_file;
mod remedy;
mod standard_output;
mod text;
mod tips;
mod value;

mod disk_options;
mod format_options;
mod progress;
mod report;
mod session;
mod short_mkfs;

mod owner;
mod stats;

mod image;

mod tree;

mod commands;

use clap::{CommandFactory, Parser};
use commands::Cli;
use failure::Usage;
use invocation::Invocation;
use mimalloc::MiMalloc;
use nix::sys::signal::{SigSet, Signal};
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
// Takes the place of functions of musl in a static binary.
use undercroft_mem as _;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Before there are threads: a write behind the limit of `ulimit -f` is an error with a message, not the
    // end of the process.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    // Later, beside the threads of a network disk, it would take 20 ms.
    undercroft_block::prepare_process();
    undercroft_block::announce_fallback(|fallback| report::note(fallback));
    undercroft_container::register(|what| report::note(what));
    #[cfg(feature = "network")]
    undercroft_nbd::client::register();
    #[cfg(feature = "objects")]
    undercroft_store::register();
    let mut options = std::env::args_os().take_while(|argument| argument != "--");
    let json = options.any(|argument| argument == "--json");
    let is_command = |word: &OsStr| Cli::command().find_subcommand(word).is_some();
    let is_root = rustix::process::geteuid().is_root();
    let (arguments, is_mount_helper) =
        match invocation::arguments(std::env::args_os(), is_command, is_root) {
            Invocation::Command(arguments) => (arguments, false),
            Invocation::Mount(arguments) => (arguments, true),
            Invocation::Nothing => return ExitCode::SUCCESS,
        };
    let arguments = match short_mkfs::translated(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return report::failure(&error.into(), json),
    };
    deferred::called(arguments.get(1).map(OsString::as_os_str));
    let own = is_mount_helper.then_some(invocation::WRONG_USAGE);
    let usage_status = own.or_else(|| commands::usage_status(&arguments));
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let status = report::unparsed(&error, json);
            let usage_status = usage_status.filter(|_| error.use_stderr());
            return usage_status.map_or(status, ExitCode::from);
        }
    };
    match commands::run(&cli) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            let status = report::failure(&error, json);
            let own = is_mount_helper.then(|| match error.downcast_ref::<Usage>() {
                Some(_) => invocation::WRONG_USAGE,
                None => invocation::NOT_MOUNTED,
            });
            own.or_else(|| cli.failure_status()).map_or(status, ExitCode::from)
        }
    }
}
