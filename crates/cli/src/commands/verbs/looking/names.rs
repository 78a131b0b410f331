//! How names are printed.

use crate::text;
use std::io::{self, Write};

/// How names are printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// End each line with a byte of zero, and print names as they are: for `xargs -0`.
    #[arg(short = '0', long = "null")]
    null: bool,
}

impl NameArgs {
    /// Lines that end with zeroes.
    pub(crate) const NULL: Self = Self { null: true };

    /// Writes a name: bytes that are not text as escapes, which commands take as well.
    pub(crate) fn write(self, name: &[u8], out: &mut dyn Write) -> io::Result<()> {
        if self.null { out.write_all(name) } else { write!(out, "{}", text::name(name)) }
    }

    /// Ends a line.
    pub(crate) fn end(self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.null { b"\0" } else { b"\n" })
    }
}
