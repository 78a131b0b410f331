//! `undercroft completions`.

use crate::report::Outcome;
use anyhow::Result;
use clap::{Command, ValueEnum};
use clap_complete::Generator;
use std::io::Write;

/// Print the completions of a shell.
///
/// For example: undercroft completions bash > ~/.local/share/bash-completion/completions/undercroft
#[derive(clap::Args)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

/// The shells that there are completions for.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}

impl Shell {
    fn generator(self) -> Box<dyn Generator> {
        match self {
            Self::Bash => Box::new(clap_complete::Shell::Bash),
            Self::Elvish => Box::new(clap_complete::Shell::Elvish),
            Self::Fish => Box::new(clap_complete::Shell::Fish),
            Self::Nushell => Box::new(clap_complete_nushell::Nushell),
            Self::Powershell => Box::new(clap_complete::Shell::PowerShell),
            Self::Zsh => Box::new(clap_complete::Shell::Zsh),
        }
    }
}

/// Prints the completions of `command`, which is all of the command line.
pub(super) fn run(args: &Args, mut command: Command, out: &mut dyn Write) -> Result<Outcome> {
    command.set_bin_name("undercroft");
    command.build();
    let mut script = Vec::new();
    args.shell.generator().generate(&command, &mut script);
    out.write_all(&script)?;
    Ok(Outcome::Done)
}
