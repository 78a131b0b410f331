//! How sizes are printed.

use crate::text;
use clap::ArgAction;

/// How sizes are printed. The letter of help is that of the option here, as people know it.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SizeArgs {
    /// Show sizes in K, M, G (powers of 1024).
    #[arg(short = 'h', long)]
    pub(crate) human_readable: bool,

    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl SizeArgs {
    /// A number of bytes: in few letters, or in units of `unit` bytes, rounded up.
    pub(crate) fn shown(self, bytes: u64, unit: u64) -> String {
        if self.human_readable {
            text::short_bytes(bytes)
        } else {
            bytes.div_ceil(unit).to_string()
        }
    }
}
