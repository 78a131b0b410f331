//! `undercroft sync`.

use super::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::Result;
use std::io::Write;

/// Make all changes so far durable.
///
/// In a shell, this is the point that survives a loss of power. On the command line every command
/// leaves the volume unmounted; there it flushes the parts of the image that the machine still has
/// in memory.
///
/// For example: undercroft sync root.img
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        session.volume.sync()?;
        Ok(Outcome::Done)
    }
}
