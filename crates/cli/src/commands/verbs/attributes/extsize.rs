//! `undercroft extsize`.

use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::Session;
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::{Change, PathError};

/// Set the extent size hints of files and directories, as `xfs_io` does with extsize and cowextsize.
///
/// Files created later in a directory get its hints. `stat` shows them.
///
/// For example: undercroft extsize --extent 1M disk.img /var/lib/vm
#[derive(clap::Args)]
#[group(id = "hint", required = true, multiple = true, args = ["extent", "copy"])]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// New space of the file is taken in multiples of this, in bytes (such as 64K); 0 for any
    /// length. Not for a file that has space already.
    #[arg(short, long, value_parser = value::size, value_name = "BYTES")]
    extent: Option<u64>,

    /// Blocks shared with other files are copied in multiples of this before one of them is
    /// changed, in bytes (such as 64K); 0 to copy only the blocks that change.
    #[arg(short, long, value_parser = value::size, value_name = "BYTES")]
    copy: Option<u64>,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let (extent_size, copy_extent_size) = (self.extent, self.copy);
        let change = Change { extent_size, copy_extent_size, ..Change::default() };
        for path in &session.matching(&self.path)? {
            let file = session.fs.open_file(path)?;
            file.set_attributes(&change).map_err(|error| PathError::new(path, error))?;
        }
        Ok(Outcome::Done)
    }
}
