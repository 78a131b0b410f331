//! How names are printed.

use crate::text;
use std::io::{self, IsTerminal, Write};

/// How names are printed: on a terminal so that shells read them, elsewhere as they are.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// End each line with a byte of zero in place of a line feed, for `xargs -0`.
    #[arg(short = '0', long = "null")]
    null: bool,
}

impl NameArgs {
    /// Lines that end with zeroes.
    pub(crate) const NULL: Self = Self { null: true };

    /// Writes a name: on a terminal in quotation marks where shells, this one too, want them.
    pub(crate) fn write(self, name: &[u8], out: &mut dyn Write) -> io::Result<()> {
        if !self.null && io::stdout().is_terminal() {
            write!(out, "{}", text::quoted(name))
        } else {
            out.write_all(name)
        }
    }

    /// Ends a line.
    pub(crate) fn end(self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.null { b"\0" } else { b"\n" })
    }
}
