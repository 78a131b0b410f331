//! A tar archive as a source: a file or a stream, plain or compressed.
//!
//! A thread reads, decompresses and decodes ahead of the consumer; file data is handed out as
//! slices of the bytes read. A scan of a plain archive in a file reads little but its headers.
//! Anything else that is to be scanned is first decompressed into an unlinked temporary file, which
//! then serves both passes.

mod acl;
mod bytes;
mod encoding;
mod error;
mod extended;
mod header;
mod header_walk;
mod input;
mod kept;
mod path;
mod pax;
mod reader;
mod seen_paths;
mod sparse;
mod spool;

pub use error::{Problem, TarError};
pub use reader::TarReader;
pub(crate) use reader::{Content, Member, WHITEOUT};
pub(crate) use spool::spool;

use crate::ahead::{Ahead, Filling};
use crate::compression::{Compression, MAGIC_LENGTH};
use crate::pool::BufferPool;
use crate::region::Region;
use crate::{Data, Entry, Options, Source, SourceError, Warnings};
use input::{Headers, Input, Stream};
use kept::{Keeping, Kept, MOST_ENTRIES};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A tar archive.
pub struct TarSource {
    archive: String,
    options: Options,
    content: Content,
    /// The archive, uncompressed, when a scan came to its end.
    scanned: Option<Region>,
    /// What the scan saw, if it was little enough.
    kept: Option<Arc<Kept>>,
    state: State,
    /// Of the last pass that came to its end.
    warnings: Warnings,
}

enum State {
    /// Nothing was read yet.
    Fresh(Origin),
    /// A scan came to its end.
    Scanned(Region),
    Reading(Ahead<Box<TarError>>),
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
            content: Content::Tree,
            scanned: None,
            kept: None,
            state: State::Fresh(origin),
            warnings: Warnings::default(),
        })
    }

    /// As errors name it.
    pub(crate) fn name(&self) -> &str {
        &self.archive
    }

    /// Takes the archive as a layer.
    pub(crate) fn of_layer(mut self) -> Self {
        self.content = Content::Layer;
        self
    }

    /// The archive, uncompressed, in a file that all passes read; before the first of them. Then the
    /// source is at its end until [`set_scanned`](Self::set_scanned).
    pub(crate) fn keep(&mut self) -> Result<Region, SourceError> {
        let origin = match std::mem::replace(&mut self.state, State::Ended) {
            State::Fresh(origin) => origin,
            other => {
                self.state = other;
                return Err(SourceError::ScanTooLate);
            }
        };
        let file = match origin {
            Origin::Plain(file) => file,
            Origin::Stream(stream) => {
                spool(stream, &self.archive, &self.options.temporary_directory, &mut |_| ())?
            }
        };
        let failed = |source| SourceError::Open { path: self.archive.clone().into(), source };
        Region::whole(Arc::new(file)).map_err(failed)
    }

    /// Notes that the archive was read once, so that the next pass may begin.
    pub(crate) fn set_scanned(&mut self, region: Region) {
        self.scanned = Some(region.clone());
        self.state = State::Scanned(region);
    }

    fn reader(&self, input: Box<dyn Input>) -> TarReader {
        TarReader::over(&self.archive, input, &self.options).content(self.content)
    }

    /// Delivers entries, and after each the data of the file.
    fn read<R>(&self, reader: R) -> Result<Ahead<Box<TarError>>, SourceError>
    where
        R: Read + Send + 'static,
    {
        let stream = Stream::new(reader, Arc::new(BufferPool::default()));
        let mut reader = self.reader(Box::new(stream));
        let read = move |filling: &mut Filling<_>| {
            while let Some(entry) = reader.next_entry()? {
                filling.entry(entry)?;
                while let Some(data) = reader.next_data()? {
                    filling.data(data)?;
                }
            }
            Ok(reader.warnings().clone())
        };
        Ahead::start(read).map_err(SourceError::Thread)
    }

    /// As [`read`](Self::read), of an archive that was scanned.
    fn read_again(&self, region: Region) -> Result<Ahead<Box<TarError>>, SourceError> {
        let Some(kept) = self.kept.clone().filter(|kept| kept.is_of(&region)) else {
            return self.read(region.stream());
        };
        let archive = self.archive.clone();
        let read = move |filling: &mut Filling<_>| kept.deliver(&archive, &region, filling);
        Ahead::start(read).map_err(SourceError::Thread)
    }
}

impl Source for TarSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        let region = self.keep()?;
        let mut reader = self.reader(Box::new(Headers::new(region.clone())));
        let known_places = Arc::new(OnceLock::new());
        let found_places = Arc::clone(&known_places);
        let read = move |filling: &mut Filling<_>| {
            let mut places = Vec::new();
            while let Some(member) = reader.next_member()? {
                if places.len() < MOST_ENTRIES {
                    places.push(member.data);
                }
                filling.entry(member.entry)?;
            }
            // Set once.
            let _ = found_places.set(places);
            Ok(reader.warnings().clone())
        };
        let mut entries = Ahead::start(read).map_err(SourceError::Thread)?;
        let mut keeping = Keeping::begin(&region);
        while let Some(entry) = entries.next_entry()? {
            visit(&entry);
            keeping = keeping.and_then(|keeping| keeping.with(entry));
        }
        self.warnings.clone_from(entries.warnings());
        let places = Arc::into_inner(known_places).and_then(OnceLock::into_inner);
        self.kept = keeping
            .zip(places)
            .and_then(|(keeping, places)| keeping.finish(places, &self.warnings));
        self.set_scanned(region);
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let mut reader = match std::mem::replace(&mut self.state, State::Ended) {
            State::Fresh(Origin::Plain(file)) => self.read(file)?,
            State::Scanned(region) => self.read_again(region)?,
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
        let region = self.scanned.clone().ok_or(SourceError::NotScanned)?;
        self.state = State::Scanned(region);
        Ok(())
    }

    fn warnings(&self) -> Warnings {
        self.warnings.clone()
    }
}
