//! A tar archive as a source.
mod error;
use crate::{Data, Entry, Options, Source, SourceError};
pub use error::{Problem, TarError};
use std::path::Path;

/// A tar archive.
pub struct TarSource {}
impl TarSource {
    /// Opens.
    pub fn open(_path: &Path, _options: &Options) -> Result<Self, SourceError> {
        Err(SourceError::ScanTooLate)
    }
    /// Opens.
    pub fn standard_input(_options: &Options) -> Result<Self, SourceError> {
        Err(SourceError::ScanTooLate)
    }
}
impl Source for TarSource {
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
