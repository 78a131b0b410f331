//! `undercroft chmod`.

use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::{LastLink, Session};
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::Change;
use undercroft_source::ModeChange;

/// Set the permission bits of files.
///
/// An access list changes with them: its mask, or the entry of the group without one, becomes the
/// bits of the group.
///
/// For example: undercroft chmod -R root.img g+w /home/user
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

    /// The contents of directories as well; symbolic links below are left alone.
    #[arg(short = 'R', long)]
    recursive: bool,

    #[command(flatten)]
    last: LastLink,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        for path in &session.matching(&self.path)? {
            session.walk(path, self.last, self.recursive, &mut |file| {
                if self.recursive && file.is_symlink() {
                    return Ok(());
                }
                let mode = Some(self.mode.apply(file.full_mode(), file.is_dir()));
                let change = Change { mode, ..Change::default() };
                session.fs.nodes().set_attributes(file.number, &change).map(drop)
            })?;
        }
        Ok(Outcome::Done)
    }
}
