//! One pass over a tree with its threads.

use super::batch::{Batch, Batches};
use super::links::LinkTable;
use super::reader::{Item, Reader, ReaderWants, Sink, Stop};
use super::window::Window;
use crate::FileError;
use crate::pool::BufferPool;
use crate::{Data, Entry, Kind, Lending, LentFile, Options, SourceError};
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// More threads than this only wait for each other.
const MAX_DEFAULT_THREADS: usize = 8;

/// The items that a pass delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Entries,
    EntriesAndData,
}

/// A running pass. Dropping it ends its threads.
pub(crate) struct Pass {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Results taken from the window, next first.
    items: std::vec::IntoIter<Item>,
    /// A data item that was met before it was asked for, or an item met while looking for data.
    next: Option<Item>,
    /// Whether the current entry is a regular file, whose data may be taken.
    in_file: bool,
}

/// The shared state of the threads.
struct Shared {
    batches: Mutex<Box<dyn Batches>>,
    window: Window<Item>,
    links: LinkTable,
    pool: Arc<BufferPool>,
    wanted: Wanted,
    lending: Option<Lending>,
}

impl Pass {
    /// Starts the threads. Files are lent where their data is wanted.
    pub(crate) fn start(
        batches: Box<dyn Batches>,
        options: &Options,
        pool: Arc<BufferPool>,
        wanted: Wanted,
        lending: Option<&Lending>,
    ) -> Result<Self, SourceError> {
        let shared = Arc::new(Shared {
            batches: Mutex::new(batches),
            window: Window::new(),
            links: LinkTable::default(),
            pool,
            wanted,
            lending: lending.filter(|_| wanted == Wanted::EntriesAndData).cloned(),
        });
        let mut pass = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            items: Vec::new().into_iter(),
            next: None,
            in_file: false,
        };
        let count = options.threads.map_or_else(default_threads, NonZeroUsize::get);
        for _ in 0..count {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new()
                .name("source-reader".into())
                .spawn(move || shared.work())
                .map_err(SourceError::Thread)?;
            pass.threads.push(thread);
        }
        Ok(pass)
    }

    fn next_item(&mut self) -> Result<Option<Item>, SourceError> {
        if let Some(item) = self.next.take() {
            return Ok(Some(item));
        }
        loop {
            if let Some(item) = self.items.next() {
                return Ok(Some(item));
            }
            match self.shared.window.next() {
                Some(items) => self.items = items.into_iter(),
                None if self.shared.window.is_stopped() => {
                    return Err(FileError::ThreadEnded.into());
                }
                None => return Ok(None),
            }
        }
    }

    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        loop {
            match self.next_item()? {
                None => return Ok(None),
                Some(Item::Data(_) | Item::Lent(_)) => {}
                Some(Item::Error(error)) => return Err(error),
                Some(Item::Entry(mut entry, linked)) => {
                    if let Some(first) = linked.and_then(|name| self.shared.links.resolve(name)) {
                        entry.kind = Kind::HardLink(first);
                        entry.xattrs.clear();
                    }
                    self.in_file = matches!(entry.kind, Kind::Regular { .. });
                    return Ok(Some(entry));
                }
            }
        }
    }

    pub(crate) fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        if !self.in_file {
            return Ok(None);
        }
        match self.next_item()? {
            Some(Item::Lent(file)) => Ok(Some(*file)),
            Some(Item::Error(error)) => Err(error),
            other => {
                self.next = other;
                Ok(None)
            }
        }
    }

    pub(crate) fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        if !self.in_file {
            return Ok(None);
        }
        match self.next_item()? {
            Some(Item::Data(data)) => Ok(Some(data)),
            Some(Item::Error(error)) => Err(error),
            other => {
                self.in_file = false;
                self.next = other;
                Ok(None)
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.shared.window.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has stopped the window, which the consumer was told.
            let _ = thread.join();
        }
    }
}

fn default_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_DEFAULT_THREADS)
}

/// The queue of the batch that a thread works on.
struct BatchQueue<'a> {
    window: &'a Window<Item>,
    batch: u64,
}

impl Sink for BatchQueue<'_> {
    fn accept(&mut self, items: Vec<Item>, weight: usize) -> bool {
        self.window.push(self.batch, items, weight, false)
    }
}

/// Stops the window when its thread panics, so that the consumer does not wait for ever.
struct StopOnPanic<'a>(&'a Window<Item>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

impl Shared {
    /// Opens a batch and fetches its work; both under one lock, so that the numbers of batches are in
    /// the order of the work.
    fn next_batch(&self) -> Option<(u64, Option<Batch>)> {
        let mut batches = self.batches.lock();
        let number = self.window.open_batch()?;
        Some((number, batches.next_batch(self.wanted == Wanted::EntriesAndData)))
    }

    /// The life of a thread.
    fn work(&self) {
        let _guard = StopOnPanic(&self.window);
        let sink = BatchQueue { window: &self.window, batch: 0 };
        let with_data = self.wanted == Wanted::EntriesAndData;
        let wanted = ReaderWants { data: with_data, lending: self.lending.as_ref() };
        let mut reader = Reader::new(&self.pool, &self.links, wanted, sink);
        while let Some((number, batch)) = self.next_batch() {
            reader.sink().batch = number;
            let last = batch.is_none();
            let stop = batch.map_or(Ok(()), |batch| read_batch(&mut reader, batch));
            let end = match stop {
                Ok(()) => Vec::new(),
                Err(Stop::Abandoned) => return,
                Err(Stop::Error(error)) => vec![Item::Error(error)],
            };
            if !self.window.push(number, end, 0, true) {
                return;
            }
            if last {
                self.window.end();
                return;
            }
        }
    }
}

fn read_batch<S: Sink>(reader: &mut Reader<'_, S>, batch: Batch) -> Result<(), Stop> {
    let mut result = Ok(());
    for (work, order) in batch.work.into_iter().zip(batch.order..) {
        result = reader.read(work, order);
        if result.is_err() {
            break;
        }
    }
    // Items read before an error are delivered before it.
    if !matches!(result, Err(Stop::Abandoned)) {
        reader.flush()?;
    }
    result?;
    batch.error.map_or(Ok(()), |error| Err(error.into()))
}
