//! A source with rules over it.

use super::Rules;
use super::addition::AddedData;
use super::error::RuleError;
use super::pass::{Pass, Ready};
use crate::pool::BufferPool;
use crate::{Data, Entry, Lending, LentFile, Options, Source, SourceError, Warnings};
use std::sync::Arc;

/// A source with rules over it.
pub(crate) struct RuledSource {
    source: Box<dyn Source>,
    rules: Arc<Rules>,
    options: Options,
    pass: Pass,
    /// The data of the entry that was delivered last, if a rule added it.
    added: Option<AddedData>,
    /// The entry that was delivered last is the last that the source gave.
    in_source: bool,
    pool: Arc<BufferPool>,
    /// Warnings of the last pass that came to its end.
    warnings: Vec<String>,
    failed: bool,
}

impl RuledSource {
    /// Puts rules over a source that follows `options`.
    pub(crate) fn over(source: Box<dyn Source>, rules: &Arc<Rules>, options: &Options) -> Self {
        Self {
            source,
            rules: Arc::clone(rules),
            options: options.clone(),
            pass: Pass::new(rules, options.sorted),
            added: None,
            in_source: false,
            pool: Arc::default(),
            warnings: Vec::new(),
            failed: false,
        }
    }

    /// The pass came to its end.
    fn finish(&mut self) -> Result<(), RuleError> {
        self.warnings = self.pass.findings.warnings(&self.rules);
        match self.warnings.split_first() {
            Some((first, others)) if self.options.strict => {
                Err(RuleError::Strict { first: first.clone(), others: others.len() })
            }
            _ => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<Option<Entry>, SourceError> {
        let (rules, exclude) = (&self.rules, &self.options.exclude);
        loop {
            if let Some(Ready { entry, data, in_source }) = self.pass.ready.pop_front() {
                (self.added, self.in_source) = (data, in_source);
                return Ok(Some(entry));
            }
            match self.source.next_entry()? {
                Some(entry) => self.pass.take(rules, exclude, entry)?,
                None if self.pass.end(rules)? => {}
                None => {
                    self.finish()?;
                    return Ok(None);
                }
            }
        }
    }
}

impl Source for RuledSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        let Self { source, rules, options: Options { exclude, .. }, pass, .. } = self;
        let mut failed = None;
        let mut deliver = |pass: &mut Pass| {
            for Ready { entry, .. } in pass.ready.drain(..) {
                visit(&entry);
            }
        };
        source.scan(&mut |entry| {
            if failed.is_none() {
                failed = pass.take(rules, exclude, entry.clone()).err();
                deliver(pass);
            }
        })?;
        if failed.is_none() {
            failed = pass.end(rules).err();
            deliver(pass);
        }
        let end = failed.map_or_else(|| self.finish(), Err);
        self.pass = Pass::new(&self.rules, self.options.sorted);
        self.failed = end.is_err();
        Ok(end?)
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        if self.failed {
            return Ok(None);
        }
        self.added = None;
        self.in_source = false;
        let entry = self.advance();
        self.failed = entry.is_err();
        entry
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        let data = match &mut self.added {
            Some(added) => added.next(&self.pool).map_err(SourceError::from),
            None if self.in_source => self.source.next_data(),
            None => Ok(None),
        };
        self.failed |= data.is_err();
        data
    }

    fn lend_files(&mut self, lending: &Lending) -> bool {
        self.source.lend_files(lending)
    }

    /// Data that a rule adds is read.
    fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        if !self.in_source || self.added.is_some() {
            return Ok(None);
        }
        let lent = self.source.lent_file();
        self.failed |= lent.is_err();
        lent
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        self.source.restart()?;
        self.pass = Pass::new(&self.rules, self.options.sorted);
        self.added = None;
        self.in_source = false;
        self.failed = false;
        Ok(())
    }

    fn warnings(&self) -> Warnings {
        Warnings { rules: self.warnings.clone(), ..self.source.warnings() }
    }
}
