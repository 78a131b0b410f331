//! The trait of sources: two passes over the same entries.

use crate::chunk::Data;
use crate::entry::Entry;
use crate::error::SourceError;
use crate::lending::{Lending, LentFile};
use crate::warnings::Warnings;

/// A tree to pack.
///
/// Order is the same on every run. Parents come before their children, a file before its hard links.
/// The root comes first where the source has one (every directory, archives that hold `./`); an
/// archive without it never delivers the empty path.
pub trait Source: Send {
    /// Visits every entry in order without reading file data: what a consumer needs to compute the size
    /// of the result. At most once, before the first [`next_entry`](Self::next_entry). Streams that
    /// cannot be read twice are first copied to an unlinked file in [`Options::temporary_directory`](crate::Options::temporary_directory).
    ///
    /// # Errors
    /// Everything that is wrong with names, headers and metadata; and [`SourceError::ScanTooLate`].
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError>;

    /// The next entry, or `None` at the end. Data of the previous entry that was not taken is skipped.
    ///
    /// # Errors
    /// The fault of the tree or archive, by name and place. After an error the source is at its
    /// end.
    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError>;

    /// The next piece of the file that [`next_entry`](Self::next_entry) returned last, in ascending
    /// order, or `None` when all of its data ranges are delivered. A piece never spans two ranges.
    ///
    /// # Errors
    /// Failed and short reads. After an error the source is at its end.
    fn next_data(&mut self) -> Result<Option<Data>, SourceError>;

    /// Asks that large files be lent instead of read, from the next [`next_entry`](Self::next_entry)
    /// after a scan or a restart on. Returns whether this source has files to lend: archives have
    /// none.
    fn lend_files(&mut self, _lending: &Lending) -> bool {
        false
    }

    /// The file that [`next_entry`](Self::next_entry) returned last, if it is lent: then
    /// [`next_data`](Self::next_data) delivers nothing of it. Asked for before that.
    ///
    /// # Errors
    /// As [`next_data`](Self::next_data).
    fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        Ok(None)
    }

    /// Goes back to where a scan left the source: before the first entry.
    ///
    /// # Errors
    /// [`SourceError::NotScanned`] without a scan that came to its end.
    fn restart(&mut self) -> Result<(), SourceError>;

    /// The warnings of the last pass that came to its end.
    fn warnings(&self) -> Warnings {
        Warnings::default()
    }
}
