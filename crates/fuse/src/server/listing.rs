//! Listings of directories.

use super::Server;
use crate::failure::Failure;
use undercroft_fs::{Entry, FileType, InodeNumber, Metadata};

impl Server {
    /// Calls `add` for the entries behind `cookie` until it returns `false`.
    pub(crate) fn list(
        &self,
        directory: InodeNumber,
        cookie: u64,
        mut add: impl FnMut(&Entry<'_>, FileType) -> bool,
    ) -> Result<(), Failure> {
        self.nodes.expect(directory)?;
        self.fs.nodes().readdir(directory, cookie, |entry| {
            // Old volumes do not record it.
            let kind = entry.kind.or_else(|| Some(self.fs.nodes().stat(entry.number).ok()?.kind));
            add(entry, kind.unwrap_or(FileType::Regular))
        })?;
        Ok(())
    }

    /// As [`list`](Self::list), and tells the kernel of each file that `add` takes.
    pub(crate) fn list_files(
        &self,
        directory: InodeNumber,
        cookie: u64,
        mut add: impl FnMut(&Entry<'_>, &Metadata) -> bool,
    ) -> Result<(), Failure> {
        self.nodes.expect(directory)?;
        self.fs.nodes().readdir_plus(directory, cookie, |entry, metadata| {
            let is_taken = add(entry, &self.shown(*metadata));
            // The kernel knows these two already.
            if is_taken && !matches!(entry.name, b"." | b"..") {
                self.nodes.remember(metadata.number);
            }
            is_taken
        })?;
        Ok(())
    }
}
