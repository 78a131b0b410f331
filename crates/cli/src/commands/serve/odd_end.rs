//! Files that end within a sector.

use anyhow::{Context, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use undercroft_block::{SECTOR_SIZE, Sector};

/// The end of a served file that is not one of a sector. A device writes whole sectors, so a write at the
/// end makes the file longer, by zeroes that no client sees.
pub(super) struct OddEnd {
    path: PathBuf,
    /// The length of the file.
    pub(super) bytes: u64,
}

impl OddEnd {
    /// That of a file, if it has one.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        let is_odd = metadata.is_file() && !metadata.len().is_multiple_of(SECTOR_SIZE);
        is_odd.then(|| Self { path: path.to_owned(), bytes: metadata.len() })
    }

    /// Gives the file its length back, when it is served no more.
    pub(super) fn restore(&self) -> Result<()> {
        let cannot = || format!("cannot give {} its length back", self.path.display());
        let length = self.path.metadata().with_context(cannot)?.len();
        // Another length is the doing of others.
        if Sector::covering(self.bytes).to_bytes() != Some(length) {
            return Ok(());
        }
        let file = File::options().write(true).open(&self.path).with_context(cannot)?;
        file.set_len(self.bytes).with_context(cannot)
    }
}
