//! A tar archive as a source: a file or a stream, plain or compressed.
//!
//! A thread reads, decompresses and decodes ahead of the consumer; file data is handed out as
//! slices of the bytes read. A scan of a plain archive in a file reads little but its headers.
//! Anything else that is to be scanned is first decompressed into an unlinked temporary file, which
//! then serves both passes.

mod acl;
mod ahead;
mod bytes;
mod compression;
mod encoding;
mod error;
mod extended;
mod gzip;
mod header;
mod input;
mod path;
mod pax;
mod reader;
mod seen;
mod sparse;

pub use error::{Problem, TarError};
pub use reader::TarReader;

use crate::pool::BufferPool;
use crate::{Data, Entry, Options, Source, SourceError, Warnings};
use ahead::{Ahead, Deliver};
use compression::{Compression, MAGIC_LENGTH};
use input::{FromStart, Headers, Input, Stream};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

/// A tar archive.
pub struct TarSource {
    archive: String,
    options: Options,
    /// The archive, uncompressed, when a scan came to its end.
    scanned: Option<Arc<File>>,
    state: State,
    /// Of the last pass that came to its end.
    warnings: Warnings,
}

enum State {
    /// Nothing was read yet.
    Fresh(Origin),
    /// A scan came to its end.
    Scanned(Arc<File>),
    Reading(Ahead),
    Ended,
}

/// Where an archive comes from.
enum Origin {
    /// A plain archive in a regular file, positioned at its start.
    Plain(File),
    /// Anything else, decompressed as it is read.
    Stream(Box<dyn Read + Send>),
}

impl TarSource {
    /// The archive in the file `path`, which may also be a pipe or device.
    ///
    /// # Errors
    /// [`SourceError::Open`] when it cannot be opened or its first bytes cannot be read.
    pub fn open(path: &Path, options: &Options) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Open { path: path.into(), source };
        let file = File::open(path).map_err(failed)?;
        Self::new(path.display().to_string(), file, options).map_err(failed)
    }

    /// The archive on standard input.
    ///
    /// # Errors
    /// [`SourceError::Open`] when the first bytes cannot be read.
    pub fn standard_input(options: &Options) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Open { path: "-".into(), source };
        let input =
            rustix::io::dup(rustix::stdio::stdin()).map_err(|error| failed(error.into()))?;
        Self::new("standard input".to_owned(), File::from(input), options).map_err(failed)
    }

    fn new(archive: String, mut file: File, options: &Options) -> io::Result<Self> {
        let seekable = file.metadata()?.is_file() && file.stream_position()? == 0;
        let mut magic = Vec::with_capacity(MAGIC_LENGTH);
        (&mut file).take(MAGIC_LENGTH as u64).read_to_end(&mut magic)?;
        let compression = Compression::of(&magic);
        let origin = if seekable && compression == Compression::None {
            file.rewind()?;
            Origin::Plain(file)
        } else {
            Origin::Stream(compression.decode(Cursor::new(magic).chain(file))?)
        };
        Ok(Self {
            archive,
            options: options.clone(),
            scanned: None,
            state: State::Fresh(origin),
            warnings: Warnings::default(),
        })
    }

    /// Copies a stream into a file that has no name and is gone with its last descriptor.
    fn spool(&self, mut stream: Box<dyn Read + Send>) -> Result<File, SourceError> {
        let directory = &self.options.temporary_directory;
        let failed = |source| SourceError::Spool {
            archive: self.archive.clone(),
            directory: directory.clone(),
            source,
        };
        let mut file = tempfile::tempfile_in(directory).map_err(failed)?;
        let mut buffer = vec![0; crate::pool::BUFFER_SIZE];
        let mut position = 0;
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let problem = reader::io_problem(error);
                    let archive = self.archive.clone();
                    let fault = TarError { archive, offset: position, entry: None, problem };
                    return Err(Box::new(fault).into());
                }
            };
            file.write_all(&buffer[..count]).map_err(failed)?;
            position += count as u64;
        }
        Ok(file)
    }

    fn ahead(&self, input: Box<dyn Input>, deliver: Deliver) -> Result<Ahead, SourceError> {
        let reader = TarReader::over(&self.archive, input, &self.options);
        Ahead::start(reader, deliver).map_err(SourceError::Thread)
    }

    fn read<R>(&self, reader: R) -> Result<Ahead, SourceError>
    where
        R: Read + Send + 'static,
    {
        let stream = Stream::new(reader, Arc::new(BufferPool::default()));
        self.ahead(Box::new(stream), Deliver::EntriesAndData)
    }
}

impl Source for TarSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        let origin = match std::mem::replace(&mut self.state, State::Ended) {
            State::Fresh(origin) => origin,
            other => {
                self.state = other;
                return Err(SourceError::ScanTooLate);
            }
        };
        let file = match origin {
            Origin::Plain(file) => file,
            Origin::Stream(stream) => self.spool(stream)?,
        };
        let failed = |source| SourceError::Open { path: self.archive.clone().into(), source };
        let file = Arc::new(file);
        let headers = Headers::new(Arc::clone(&file)).map_err(failed)?;
        let mut entries = self.ahead(Box::new(headers), Deliver::Entries)?;
        while let Some(entry) = entries.next_entry()? {
            visit(&entry);
        }
        self.warnings.clone_from(entries.warnings());
        self.scanned = Some(Arc::clone(&file));
        self.state = State::Scanned(file);
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let mut reader = match std::mem::replace(&mut self.state, State::Ended) {
            State::Fresh(Origin::Plain(file)) => self.read(file)?,
            State::Scanned(file) => self.read(FromStart::new(file))?,
            State::Fresh(Origin::Stream(stream)) => self.read(stream)?,
            State::Reading(reader) => reader,
            State::Ended => return Ok(None),
        };
        let entry = reader.next_entry()?;
        match &entry {
            Some(_) => self.state = State::Reading(reader),
            None => self.warnings.clone_from(reader.warnings()),
        }
        Ok(entry)
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        match &mut self.state {
            State::Reading(reader) => Ok(reader.next_data()?),
            _ => Ok(None),
        }
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        let file = self.scanned.as_ref().ok_or(SourceError::NotScanned)?;
        self.state = State::Scanned(Arc::clone(file));
        Ok(())
    }

    fn warnings(&self) -> Warnings {
        self.warnings.clone()
    }
}
