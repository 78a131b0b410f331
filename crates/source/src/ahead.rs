//! A source that a thread of its own reads, decompresses and decodes ahead of the consumer.

use crate::{Data, Entry, Warnings};
use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Batches that wait for the consumer: where files are small a packer is behind, and catches up where
/// they are large.
const BATCHES: usize = 12;
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

/// Without faults, so that all sources have the same channel.
type Batch = VecDeque<Item>;

/// The source, as far as the thread has come. The thread ends with the source or with this; where it
/// waits for input at that moment, it ends after it.
#[derive(Debug)]
pub struct Ahead<E> {
    batches: Receiver<Batch>,
    /// Ends with the fault of the source, if there is one; until that is known.
    thread: Option<JoinHandle<Option<E>>>,
    items: Batch,
    warnings: Warnings,
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
        let thread = thread::Builder::new()
            .name("source-reader".into())
            .spawn(move || Filling::new(sender).run(read))?;
        Ok(Self {
            batches,
            thread: Some(thread),
            items: Batch::new(),
            warnings: Warnings::default(),
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
                Some(Item::End(warnings)) => self.warnings = warnings,
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
            if let Ok(batch) = self.batches.recv() {
                self.items = batch;
                continue;
            }
            return match self.thread.take().map(JoinHandle::join) {
                Some(Ok(Some(fault))) => Err(fault),
                Some(Ok(None)) | None => Ok(()),
                // Else half a source would pass for a whole one.
                Some(Err(_)) => panic!("the thread that reads the source has panicked"),
            };
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
    sender: SyncSender<Batch>,
    items: Batch,
    bytes: usize,
    fault: PhantomData<E>,
}

impl<E> Filling<E> {
    fn new(sender: SyncSender<Batch>) -> Self {
        let items = Batch::with_capacity(BATCH_ITEMS);
        Self { sender, items, bytes: 0, fault: PhantomData }
    }

    /// Reads the source to its end, its first fault, which it returns, or the end of interest in it.
    fn run(mut self, read: impl FnOnce(&mut Self) -> Result<Warnings, Stop<E>>) -> Option<E> {
        let end = read(&mut self).and_then(|warnings| {
            self.push(Item::End(warnings), 0)?;
            self.flush()
        });
        let Err(Stop::Fault(fault)) = end else { return None };
        // The items before it; the receiver may be gone.
        let _ = self.flush();
        Some(fault)
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
        let items = std::mem::replace(&mut self.items, Batch::with_capacity(BATCH_ITEMS));
        self.sender.send(items).map_err(|_| Stop::Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_fault_is_told_once_and_then_the_source_is_at_its_end() {
        let mut ahead = Ahead::start(|_| Err(Stop::Fault("damaged"))).unwrap();
        assert_eq!(ahead.next_entry().unwrap_err(), "damaged");
        assert!(ahead.next_entry().unwrap().is_none());
        let mut whole = Ahead::<&str>::start(|_| Ok(Warnings::default())).unwrap();
        assert!(whole.next_entry().unwrap().is_none());
        assert!(whole.next_data().unwrap().is_none());
    }

    #[test]
    fn a_thread_that_panics_is_no_end_of_the_source() {
        let mut ahead = Ahead::<&str>::start(|_| panic!("a defect of a reader")).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| ahead.next_entry())).is_err());
    }
}
