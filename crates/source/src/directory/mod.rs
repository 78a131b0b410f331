//! A directory tree as a source.
//!
//! `walk` lists the entries, and the threads of `crate::files` read them.
//!
//! Of several names of a file the first in the order of the walk is the file and the others are hard
//! links; names that are excluded do not count.
//!
//! Mount points inside the tree are walked into, as `tar` does. `trusted.*` attributes are visible to
//! root only.

mod kept;
mod listing;
mod walk;

use crate::files::{Batches, Handle, Passes};
use crate::{Data, Entry, FileError, Lending, LentFile, Options, Source, SourceError};
use kept::{Keeping, Kept, KeptFiles, KeptPass, Next};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walk::Walk;

/// A directory tree.
pub struct DirectorySource {
    root: PathBuf,
    options: Options,
    passes: Passes,
    /// What the scan saw, if that is not too much.
    kept: Option<KeptPass>,
}

impl DirectorySource {
    /// A source that packs the contents of the directory `root`; a symbolic link to one is
    /// followed.
    ///
    /// # Errors
    /// [`SourceError::Open`] when it is no directory that can be opened, [`FileError::Fakeroot`] under
    /// fakeroot.
    pub fn open(root: &Path, options: &Options) -> Result<Self, SourceError> {
        if std::env::var_os("FAKEROOTKEY").is_some() {
            return Err(FileError::Fakeroot { path: root.into() }.into());
        }
        // The directory is opened anew for each pass; this tells early that it can be.
        walk(root, options, None)?;
        let (options, passes) = (options.clone(), Passes::new(options));
        Ok(Self { root: root.into(), options, passes, kept: None })
    }
}

/// The walk over the tree of `root`, or over the files that are `kept` of it.
fn walk(
    root: &Path,
    options: &Options,
    kept: Option<&Arc<Kept>>,
) -> Result<Box<dyn Batches>, SourceError> {
    let handle = Handle::root(root)
        .map_err(|error| SourceError::Open { path: root.into(), source: error.into() })?;
    Ok(match kept {
        Some(kept) => Box::new(KeptFiles::new(handle, kept)),
        None => Box::new(Walk::new(handle, options.exclude.clone())),
    })
}

impl Source for DirectorySource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        let mut keeping = Keeping::new();
        self.passes.scan(|| walk(&self.root, &self.options, None), &mut |entry| {
            visit(&entry);
            keeping.add(entry);
        })?;
        self.kept = keeping.finish().map(KeptPass::new);
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        if let Some(pass) = &mut self.kept {
            match pass.next() {
                Next::Whole(entry) => return Ok(Some(entry)),
                Next::File => {}
                Next::End => return Ok(None),
            }
        }
        let kept = self.kept.as_ref().map(|pass| &pass.kept);
        let next = self.passes.next_entry(|| walk(&self.root, &self.options, kept));
        next.inspect_err(|_| self.end_pass())
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        if !self.in_file() {
            return Ok(None);
        }
        self.passes.next_data().inspect_err(|_| self.end_pass())
    }

    fn lend_files(&mut self, lending: &Lending) -> bool {
        self.passes.lend_files(lending);
        true
    }

    fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        if !self.in_file() {
            return Ok(None);
        }
        self.passes.lent_file().inspect_err(|_| self.end_pass())
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        if let Some(pass) = &mut self.kept {
            pass.restart();
        }
        self.passes.restart()
    }
}

impl DirectorySource {
    /// Whether the last entry may be a file with data.
    fn in_file(&self) -> bool {
        self.kept.as_ref().is_none_or(KeptPass::in_file)
    }

    /// After an error nothing comes any more.
    fn end_pass(&mut self) {
        if let Some(pass) = &mut self.kept {
            pass.end();
        }
    }
}
