//! The two passes of a source whose entries threads read.

use super::batch::Batches;
use super::pass::{Pass, Wanted};
use crate::pool::BufferPool;
use crate::{Data, Entry, Lending, LentFile, Options, SourceError};
use std::sync::Arc;

/// Where a source is in its passes.
pub(crate) struct Passes {
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

impl Passes {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            options: options.clone(),
            pool: Arc::default(),
            lending: None,
            scanned: false,
            state: State::Fresh,
        }
    }

    fn start(&self, batches: Box<dyn Batches>, wanted: Wanted) -> Result<Pass, SourceError> {
        Pass::start(batches, &self.options, Arc::clone(&self.pool), wanted, self.lending.as_ref())
    }

    /// [`Source::scan`](crate::Source::scan), over `batches`.
    pub(crate) fn scan(
        &mut self,
        batches: impl FnOnce() -> Result<Box<dyn Batches>, SourceError>,
        visit: &mut dyn FnMut(Entry),
    ) -> Result<(), SourceError> {
        if !matches!(self.state, State::Fresh) {
            return Err(SourceError::ScanTooLate);
        }
        self.state = State::Ended;
        let mut pass = self.start(batches()?, Wanted::Entries)?;
        while let Some(entry) = pass.next_entry()? {
            visit(entry);
        }
        self.scanned = true;
        self.state = State::Scanned;
        Ok(())
    }

    /// [`Source::next_entry`](crate::Source::next_entry); a new pass is over `batches`.
    pub(crate) fn next_entry(
        &mut self,
        batches: impl FnOnce() -> Result<Box<dyn Batches>, SourceError>,
    ) -> Result<Option<Entry>, SourceError> {
        if matches!(self.state, State::Fresh | State::Scanned) {
            self.state = State::Ended;
            self.state = State::Reading(Box::new(self.start(batches()?, Wanted::EntriesAndData)?));
        }
        let State::Reading(pass) = &mut self.state else { return Ok(None) };
        let result = pass.next_entry();
        if !matches!(result, Ok(Some(_))) {
            self.state = State::Ended;
        }
        result
    }

    /// [`Source::next_data`](crate::Source::next_data).
    pub(crate) fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        let State::Reading(pass) = &mut self.state else { return Ok(None) };
        let result = pass.next_data();
        if result.is_err() {
            self.state = State::Ended;
        }
        result
    }

    /// [`Source::lend_files`](crate::Source::lend_files).
    pub(crate) fn lend_files(&mut self, lending: &Lending) {
        self.lending = Some(lending.clone());
    }

    /// [`Source::lent_file`](crate::Source::lent_file).
    pub(crate) fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        let State::Reading(pass) = &mut self.state else { return Ok(None) };
        let result = pass.lent_file();
        if result.is_err() {
            self.state = State::Ended;
        }
        result
    }

    /// [`Source::restart`](crate::Source::restart).
    pub(crate) fn restart(&mut self) -> Result<(), SourceError> {
        if !self.scanned {
            return Err(SourceError::NotScanned);
        }
        self.state = State::Scanned;
        Ok(())
    }
}
