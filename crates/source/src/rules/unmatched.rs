//! A source of which all patterns of what is left out have to match something.

use super::error::RuleError;
use crate::{Data, Entry, Exclude, Lending, LentFile, Source, SourceError, Warnings};

/// A source whose exclusions note what they match.
pub(crate) struct MatchedSource {
    source: Box<dyn Source>,
    exclude: Exclude,
}

impl MatchedSource {
    /// A source that follows `exclude`, which notes what its patterns match.
    pub(crate) fn over(source: Box<dyn Source>, exclude: &Exclude) -> Self {
        Self { source, exclude: exclude.clone() }
    }

    /// Fails, at the end of a pass, if a pattern matched nothing.
    fn check(&self) -> Result<(), SourceError> {
        let mut unmatched = self.exclude.unmatched();
        let Some(first) = unmatched.next() else { return Ok(()) };
        let first = format!("the pattern {first} matches nothing that would be taken");
        Err(RuleError::Strict { first, others: unmatched.count() }.into())
    }
}

impl Source for MatchedSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        self.source.scan(visit)?;
        self.check()
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let entry = self.source.next_entry()?;
        if entry.is_none() {
            self.check()?;
        }
        Ok(entry)
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        self.source.next_data()
    }

    fn lend_files(&mut self, lending: &Lending) -> bool {
        self.source.lend_files(lending)
    }

    fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        self.source.lent_file()
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        self.source.restart()
    }

    fn warnings(&self) -> Warnings {
        self.source.warnings()
    }
}
