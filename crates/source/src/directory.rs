//! A directory tree as a source.
mod error;
use crate::{Data, Entry, Options, Source, SourceError};
pub use error::DirectoryError;
use std::path::Path;

/// A directory tree.
pub struct DirectorySource {}
impl DirectorySource {
    /// Opens.
    pub fn open(_path: &Path, _options: &Options) -> Result<Self, SourceError> {
        Err(SourceError::ScanTooLate)
    }
}
impl Source for DirectorySource {
    fn scan(&mut self, _visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        Ok(())
    }
    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        Ok(None)
    }
    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        Ok(None)
    }
}
