//! A directory tree as a source.
//!
//! Threads read ahead of the consumer, up to 64 MiB; the consumer sees the order of the walk with
//! any number of threads. The parts: `walk` lists the entries, `reader` reads them, `window` puts
//! the results in order, `links` decides which name of a file is its first.
//!
//! Of several names of a file the first in the order of the walk is the file and the others are hard
//! links; names that are excluded do not count.
//!
//! Mount points inside the tree are walked into, as `tar` does. `trusted.*` attributes are visible to
//! root only.

mod error;
mod handle;
mod holes;
mod links;
mod listing;
mod listxattrat;
mod pass;
mod reader;
mod walk;
mod window;
mod xattrs;

pub use error::DirectoryError;
pub(crate) use holes::data_ranges;

use crate::pool::BufferPool;
use crate::{Data, Entry, Lending, LentFile, Options, Source, SourceError};
use pass::{Pass, Wanted};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory tree.
pub struct DirectorySource {
    root: PathBuf,
    options: Options,
    pool: Arc<BufferPool>,
    /// Files that the consumer reads itself.
    lending: Option<Lending>,
    /// A scan came to its end.
    scanned: bool,
    state: State,
}

enum State {
    Fresh,
    Scanned,
    Reading(Box<Pass>),
    Ended,
}

impl DirectorySource {
    /// A source that packs the contents of the directory `root`; a symbolic link to one is
    /// followed.
    ///
    /// # Errors
    /// [`SourceError::Open`] when it is no directory that can be opened.
    pub fn open(root: &Path, options: &Options) -> Result<Self, SourceError> {
        // The directory is opened anew for each pass; this tells early that it can be.
        handle::Handle::root(root)
            .map_err(|error| SourceError::Open { path: root.into(), source: error.into() })?;
        Ok(Self {
            root: root.into(),
            options: options.clone(),
            pool: Arc::default(),
            lending: None,
            scanned: false,
            state: State::Fresh,
        })
    }

    fn pass(&self, wanted: Wanted) -> Result<Pass, SourceError> {
        let lending = self.lending.as_ref().filter(|_| wanted == Wanted::EntriesAndData);
        Pass::start(&self.root, &self.options, Arc::clone(&self.pool), wanted, lending)
    }
}

impl Source for DirectorySource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        if !matches!(self.state, State::Fresh) {
            return Err(SourceError::ScanTooLate);
        }
        self.state = State::Ended;
        let mut pass = self.pass(Wanted::Entries)?;
        while let Some(entry) = pass.next_entry()? {
            visit(&entry);
        }
        self.scanned = true;
        self.state = State::Scanned;
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        if matches!(self.state, State::Fresh | State::Scanned) {
            self.state = State::Reading(Box::new(self.pass(Wanted::EntriesAndData)?));
        }
        let State::Reading(pass) = &mut self.state else { return Ok(None) };
        let result = pass.next_entry();
        if !matches!(result, Ok(Some(_))) {
            self.state = State::Ended;
        }
        Ok(result?)
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        let State::Reading(pass) = &mut self.state else { return Ok(None) };
        let result = pass.next_data();
        if result.is_err() {
            self.state = State::Ended;
        }
        Ok(result?)
    }

    fn lend_files(&mut self, lending: &Lending) -> bool {
        self.lending = Some(lending.clone());
        true
    }

    fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        let State::Reading(pass) = &mut self.state else { return Ok(None) };
        let result = pass.lent_file();
        if result.is_err() {
            self.state = State::Ended;
        }
        Ok(result?)
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        if !self.scanned {
            return Err(SourceError::NotScanned);
        }
        self.state = State::Scanned;
        Ok(())
    }
}
