//! A source that a thread of its own reads, decompresses and decodes ahead of the consumer.

use crate::{Data, Entry, Warnings};
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Batches that wait for the consumer.
const BATCHES: usize = 4;
/// Entries and pieces of data in a batch: enough that handing it over costs nothing for each.
const BATCH_ITEMS: usize = 256;
/// Bytes in a batch: entries, which may have many attributes, and data, which keeps its buffers from
/// being used again.
const BATCH_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
enum Item {
    Entry(Entry),
    Data(Data),
    /// The end of the source.
    End(Warnings),
}

type Batch<E> = Result<VecDeque<Item>, E>;

/// The source, as far as the thread has come. The thread ends with the source or with this; where it
/// waits for input at that moment, it ends after it.
#[derive(Debug)]
pub struct Ahead<E> {
    batches: Receiver<Batch<E>>,
    items: VecDeque<Item>,
    warnings: Warnings,
    /// The end, or a fault, was received.
    has_ended: bool,
}

impl<E: Send + 'static> Ahead<E> {
    /// Starts a thread in which `read` delivers entries and data to its [`Filling`] to the end of
    /// the source.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start<F>(read: F) -> io::Result<Self>
    where
        F: FnOnce(&mut Filling<E>) -> Result<Warnings, Stop<E>> + Send + 'static,
    {
        let (sender, batches) = sync_channel(BATCHES);
        thread::Builder::new()
            .name("source-reader".into())
            .spawn(move || Filling::new(sender).run(read))?;
        Ok(Self {
            batches,
            items: VecDeque::new(),
            warnings: Warnings::default(),
            has_ended: false,
        })
    }

    /// The warnings of the source; known at its end.
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// The next entry, or `None` at the end; data that was not taken is left out.
    ///
    /// # Errors
    /// The fault at which the thread ended, behind everything before it.
    ///
    /// # Panics
    /// The thread has panicked.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, E> {
        loop {
            self.receive()?;
            match self.items.pop_front() {
                Some(Item::Entry(entry)) => return Ok(Some(entry)),
                Some(Item::Data(_)) => {}
                Some(Item::End(warnings)) => {
                    self.warnings = warnings;
                    self.has_ended = true;
                }
                None => return Ok(None),
            }
        }
    }

    /// The next data of the entry that came last.
    ///
    /// # Errors
    /// As [`next_entry`](Self::next_entry).
    ///
    /// # Panics
    /// The thread has panicked.
    pub fn next_data(&mut self) -> Result<Option<Data>, E> {
        self.receive()?;
        match self.items.pop_front() {
            Some(Item::Data(data)) => Ok(Some(data)),
            Some(other) => {
                self.items.push_front(other);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Sees to it that there is an item unless the source is at its end.
    fn receive(&mut self) -> Result<(), E> {
        while self.items.is_empty() {
            let Ok(batch) = self.batches.recv() else {
                // Else half a source would pass for a whole one.
                assert!(self.has_ended, "the thread that reads the source has panicked");
                break;
            };
            self.has_ended |= batch.is_err();
            self.items = batch?;
        }
        Ok(())
    }
}

/// Why the thread ends before the end of the source.
#[derive(Debug)]
pub enum Stop<E> {
    /// The consumer is gone.
    Gone,
    /// The source cannot be read on.
    Fault(E),
}

impl<E> From<E> for Stop<E> {
    fn from(fault: E) -> Self {
        Self::Fault(fault)
    }
}

/// The batch that is being filled.
#[derive(Debug)]
pub struct Filling<E> {
    sender: SyncSender<Batch<E>>,
    items: VecDeque<Item>,
    bytes: usize,
}

impl<E> Filling<E> {
    fn new(sender: SyncSender<Batch<E>>) -> Self {
        Self { sender, items: VecDeque::with_capacity(BATCH_ITEMS), bytes: 0 }
    }

    /// Reads the source to its end, its first fault, or the end of interest in it.
    fn run(mut self, read: impl FnOnce(&mut Self) -> Result<Warnings, Stop<E>>) {
        let end = read(&mut self).and_then(|warnings| {
            self.push(Item::End(warnings), 0)?;
            self.flush()
        });
        if let Err(Stop::Fault(fault)) = end {
            // Items before the fault are sent first; the receiver may be gone.
            let _ = self.flush().is_ok() && self.sender.send(Err(fault)).is_ok();
        }
    }

    /// Delivers an entry.
    ///
    /// # Errors
    /// The consumer is gone.
    pub fn entry(&mut self, entry: Entry) -> Result<(), Stop<E>> {
        let bytes = entry.weight();
        self.push(Item::Entry(entry), bytes)
    }

    /// Delivers data of the entry that came last.
    ///
    /// # Errors
    /// The consumer is gone.
    pub fn data(&mut self, data: Data) -> Result<(), Stop<E>> {
        let bytes = data.chunk.len();
        self.push(Item::Data(data), bytes)
    }

    fn push(&mut self, item: Item, bytes: usize) -> Result<(), Stop<E>> {
        self.items.push_back(item);
        self.bytes += bytes;
        if self.items.len() < BATCH_ITEMS && self.bytes < BATCH_BYTES {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn flush(&mut self) -> Result<(), Stop<E>> {
        self.bytes = 0;
        let items = std::mem::replace(&mut self.items, VecDeque::with_capacity(BATCH_ITEMS));
        self.sender.send(Ok(items)).map_err(|_| Stop::Gone)
    }
}
