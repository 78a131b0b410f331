//! A stream that is no container image: its form shows only when all of its names were read.

use super::error::{ImageError, ImageProblem};
use super::recognise::Names;
use crate::{Data, Entry, Source, SourceError, Warnings};

/// The entries of a stream. If they are those of an image, the end is an error: the image's tree is meant.
pub(crate) struct PlainStream {
    source: Box<dyn Source>,
    /// As errors name it.
    name: String,
    names: Names,
}

impl PlainStream {
    pub(crate) fn new(source: Box<dyn Source>, name: String) -> Self {
        Self { source, name, names: Names::default() }
    }

    fn end(&self) -> Result<(), SourceError> {
        if self.names.are_of_image() {
            let image = self.name.clone();
            return Err(Box::new(ImageError { image, problem: ImageProblem::InStream }).into());
        }
        Ok(())
    }
}

impl Source for PlainStream {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        let names = &mut self.names;
        self.source.scan(&mut |entry| {
            names.take(entry);
            visit(entry);
        })?;
        self.end()
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let entry = self.source.next_entry()?;
        match &entry {
            Some(entry) => {
                self.names.take(entry);
            }
            None => self.end()?,
        }
        Ok(entry)
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        self.source.next_data()
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        self.source.restart()
    }

    fn warnings(&self) -> Warnings {
        self.source.warnings()
    }
}
