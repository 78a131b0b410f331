//! `undercroft get`.

use super::cat;
use super::verb::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use undercroft_xfs::{OpenFile, ReadPattern};

/// Copy a file out of the volume.
///
/// Contents, holes, permission bits and the time of modification are kept. For whole trees there is
/// `undercroft extract`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// The file to make on this machine, a directory to make it in, or - for standard output.
    #[arg(default_value = ".")]
    dest: PathBuf,

    /// Overwrite a file that exists.
    #[arg(short, long)]
    force: bool,

    /// Print contents that go to standard output as `cat --json` does.
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn changes(&self) -> bool {
        false
    }

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let source = session.open(&self.path)?;
        if self.dest.as_os_str() == "-" {
            cat::print(session, &self.path, self.json, out)?;
            return Ok(Outcome::Done);
        }
        let dest = if self.dest.is_dir() {
            let name = Path::new(&self.path).file_name();
            self.dest.join(name.context("the root directory is no file")?)
        } else {
            self.dest.clone()
        };
        if !self.force && dest.symlink_metadata().is_ok() {
            bail!("{} exists; use --force to overwrite it", dest.display());
        }
        copy(&source, &dest).with_context(|| format!("cannot write {}", dest.display()))?;
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

fn copy(source: &OpenFile, dest: &Path) -> Result<()> {
    // Before the file is made: what cannot be read leaves nothing behind.
    source.read(0, &mut [])?;
    source.expect_reads(ReadPattern::Sequential);
    let ranges = source.data_ranges()?;
    let core = source.inode().read().core.clone();
    let file = File::create(dest)?;
    let mut buffer = vec![0; CHUNK];
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let len = usize::try_from(range.end - at).unwrap_or(CHUNK).min(CHUNK);
            let len = source.read(at, &mut buffer[..len])?;
            if len == 0 {
                break;
            }
            file.write_all_at(&buffer[..len], at)?;
            at += len as u64;
        }
    }
    file.set_len(core.size)?;
    file.set_permissions(std::fs::Permissions::from_mode((core.mode & 0o777).into()))?;
    let times = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: rustix::fs::Timespec {
            tv_sec: core.mtime.seconds,
            tv_nsec: core.mtime.nanoseconds.into(),
        },
    };
    Ok(rustix::fs::futimens(&file, &times)?)
}
