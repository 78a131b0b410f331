//! `undercroft chmod`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_source::ModeChange;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, MetadataChange};

/// Set the permission bits of files.
///
/// An access list changes with them: its mask, or the entry of the group without one, becomes the
/// bits of the group.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Up to four octal digits: setuid 4, setgid 2, sticky 1; then owner, group, others. Or
    /// letters, as u+x,g-w or a=rX: whose bits (user, group, others, all; all if left out), + - or
    /// =, which (r, w, x, s, t; X for x on directories and on files that have an x; or u, g, o for
    /// the bits of a class).
    // `-w` is a mode, as for chmod(1), and no option.
    #[arg(allow_hyphen_values = true)]
    mode: ModeChange,

    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// The contents of directories as well; symbolic links are left alone.
    #[arg(short = 'R', long)]
    recursive: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        for path in &self.path {
            session.walk(path, self.recursive, &mut |path, number| {
                let kind = session.kind(number)?;
                if self.recursive && kind == FileType::Symlink {
                    return Ok(());
                }
                let bits = session.volume.inode(number)?.read().core.mode;
                let mode = Some(self.mode.apply(bits, kind == FileType::Directory));
                let change = MetadataChange { mode, ..MetadataChange::default() };
                ops::change_metadata(session.volume, number, &change, session.now())
                    .map_err(|error| renamed(error, OsStr::from_bytes(path)).into())
            })?;
        }
        Ok(Outcome::Done)
    }
}
