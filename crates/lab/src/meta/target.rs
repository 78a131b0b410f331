//! The targets of the generator.

use crate::error::LabError;

/// A file system with directories that the generator made.
pub(super) trait Target: Sync {
    /// Makes this many empty directories.
    fn make_directories(&self, count: usize) -> Result<Box<dyn Directories + '_>, LabError>;

    /// Makes everything durable.
    fn sync(&self) -> Result<(), LabError>;

    /// Leaves the file system as an unmount does, where it is open for the experiment only.
    fn close(self: Box<Self>) -> Result<(), LabError>;
}

/// The directories of one round, by number.
pub(super) trait Directories: Sync {
    /// Creates an empty file.
    fn create(&self, directory: usize, name: &str) -> Result<(), LabError>;

    /// Reads the metadata of a file by its name; returns its count of links.
    fn stat(&self, directory: usize, name: &str) -> Result<u64, LabError>;

    /// Deletes a file.
    fn delete(&self, directory: usize, name: &str) -> Result<(), LabError>;

    /// Removes the directories, which are empty again.
    fn remove(self: Box<Self>) -> Result<(), LabError>;
}
