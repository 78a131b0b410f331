//! `undercroft get`.

use crate::commands::extract::{self, Target};
use crate::commands::verbs::{Verb, cat};
use crate::failure::Usage;
use crate::report::Outcome;
use crate::session::{LastLink, Session};
use anyhow::{Context, Result, bail};
use clap::ValueHint;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use undercroft_fs::PathError;
use undercroft_image::unpack::Subtree;
use undercroft_xfs::format::InodeCore;
use undercroft_xfs::ops::path_text;
use undercroft_xfs::{OpenFile, ReadPattern};

/// Copy a file, or with -r a directory, out of the volume.
///
/// Of a file contents, holes, permission bits and the time of modification are kept. A directory is
/// copied as `undercroft extract` does it: with links, devices, owners and attributes as far as
/// rights allow, and to standard output as a tar stream.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// The file or directory to make on this machine, a directory to make it in, or - for standard
    /// output.
    #[arg(default_value = ".", value_hint = ValueHint::AnyPath)]
    dest: PathBuf,

    /// Copy a directory with everything below it.
    #[arg(short, long)]
    recursive: bool,

    #[command(flatten)]
    last: LastLink,

    /// Overwrite a file that exists; with -r, replace what is in the directory.
    #[arg(short, long)]
    force: bool,

    /// Print contents that go to standard output as `cat --json` does; with -r, print the summary as
    /// JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft get root.img /etc/fstab                     the file fstab, here
  undercroft get -r root.img /etc                        the directory etc, here
  undercroft get -r root.img /home/user backup           ... backup, or in backup if that exists
  undercroft get -r root.img /var/log - | tar tv         ... as a tar stream";

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let source = session.open(&self.path, self.last)?;
        if source.metadata().is_dir() {
            return self.copy_tree(session, out);
        }
        if self.dest.as_os_str() == "-" {
            cat::print(source.open_file(), &self.path, self.json, out)?;
            return Ok(Outcome::Done);
        }
        let dest = self.place();
        if !self.force && dest.symlink_metadata().is_ok() {
            bail!("{} exists; use --force to overwrite it", dest.display());
        }
        self.copy(source.open_file(), &dest)?;
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    /// Whether standard output gets an archive, if the path is that of a directory.
    pub(crate) fn is_archive(&self) -> bool {
        self.recursive && Target::is_archive(&self.dest)
    }

    /// The path to copy to: in a directory under the name that it has in the volume. The root
    /// directory has none.
    fn place(&self) -> PathBuf {
        match Path::new(&self.path).file_name() {
            Some(name) if self.dest.is_dir() => self.dest.join(name),
            _ => self.dest.clone(),
        }
    }

    fn copy_tree(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        if !self.recursive {
            let path = path_text(self.path.as_bytes());
            bail!("{path} is a directory; use -r to copy it with all that is in it");
        }
        let place = if self.is_archive() { self.dest.clone() } else { self.place() };
        if self.is_archive() && self.json {
            return Err(Usage("an archive is no JSON: name a directory instead of -".into()).into());
        }
        let tree = Subtree::at(&session.fs, Path::new(&self.path))?;
        extract::unpack(tree, &Target { path: &place, replace: self.force }, self.json, out)
    }

    fn copy(&self, source: &OpenFile, dest: &Path) -> Result<()> {
        let unread = |error| PathError::new(&self.path, error);
        let unwritten = || format!("cannot write {}", dest.display());
        // Before the file is made: what cannot be read leaves nothing behind.
        source.read(0, &mut []).map_err(unread)?;
        source.expect_reads(ReadPattern::Sequential);
        let ranges = source.data_ranges().map_err(unread)?;
        let file = File::create(dest).with_context(unwritten)?;
        let mut memory = Vec::new();
        for range in ranges {
            let write = |at, bytes: &[u8]| file.write_all_at(bytes, at);
            source.lend(range, &mut memory, write).map_err(unread)?.with_context(unwritten)?;
        }
        let core = source.inode().read().core.clone();
        finish(&file, &core).with_context(unwritten)
    }
}

/// Gives a copy the size, permissions and time of modification of its source.
fn finish(file: &File, core: &InodeCore) -> Result<()> {
    file.set_len(core.size)?;
    file.set_permissions(std::fs::Permissions::from_mode((core.mode & 0o777).into()))?;
    let times = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: rustix::fs::Timespec {
            tv_sec: core.mtime.seconds,
            tv_nsec: core.mtime.nanoseconds.into(),
        },
    };
    Ok(rustix::fs::futimens(file, &times)?)
}
