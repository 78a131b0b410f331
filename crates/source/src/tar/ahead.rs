//! An archive that a thread of its own reads, decompresses and decodes ahead of the consumer.

use super::error::TarError;
use super::reader::TarReader;
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

/// The work for the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deliver {
    /// Entries alone.
    Entries,
    /// Entries, and after each the data of the file.
    EntriesAndData,
}

enum Item {
    Entry(Entry),
    Data(Data),
    /// The end of the archive.
    End(Warnings),
}

type Batch = Result<VecDeque<Item>, Box<TarError>>;

/// The archive, as far as the thread has come. The thread ends with the archive or with this; where it
/// waits for input at that moment, it ends after it.
pub(super) struct Ahead {
    batches: Receiver<Batch>,
    items: VecDeque<Item>,
    warnings: Warnings,
}

impl Ahead {
    pub(super) fn start(reader: TarReader, deliver: Deliver) -> io::Result<Self> {
        let (sender, batches) = sync_channel(BATCHES);
        thread::Builder::new()
            .name("source-reader".into())
            .spawn(move || Filling::new(sender).run(reader, deliver))?;
        Ok(Self { batches, items: VecDeque::new(), warnings: Warnings::default() })
    }

    /// The warnings of the archive; known at its end.
    pub(super) fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// The next entry, or `None` at the end; data that was not taken is left out.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, Box<TarError>> {
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
    pub(super) fn next_data(&mut self) -> Result<Option<Data>, Box<TarError>> {
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

    /// Sees to it that there is an item unless the archive is at its end.
    fn receive(&mut self) -> Result<(), Box<TarError>> {
        while self.items.is_empty() {
            let Ok(batch) = self.batches.recv() else { break };
            self.items = batch?;
        }
        Ok(())
    }
}

/// Why the thread ends before the end of the archive.
enum Stop {
    /// The consumer is gone.
    Gone,
    Fault(Box<TarError>),
}

impl From<Box<TarError>> for Stop {
    fn from(fault: Box<TarError>) -> Self {
        Self::Fault(fault)
    }
}

/// The batch that is being filled.
struct Filling {
    sender: SyncSender<Batch>,
    items: VecDeque<Item>,
    bytes: usize,
}

impl Filling {
    fn new(sender: SyncSender<Batch>) -> Self {
        Self { sender, items: VecDeque::with_capacity(BATCH_ITEMS), bytes: 0 }
    }

    /// Reads the archive to its end, its first fault, or the end of interest in it.
    fn run(mut self, mut reader: TarReader, deliver: Deliver) {
        let end = self.fill(&mut reader, deliver).and_then(|()| self.flush());
        if let Err(Stop::Fault(fault)) = end {
            // Items before the fault are sent first; the receiver may be gone.
            let _ = self.flush().is_ok() && self.sender.send(Err(fault)).is_ok();
        }
    }

    fn fill(&mut self, reader: &mut TarReader, deliver: Deliver) -> Result<(), Stop> {
        while let Some(entry) = reader.next_entry()? {
            let bytes = entry.weight();
            self.push(Item::Entry(entry), bytes)?;
            if deliver == Deliver::EntriesAndData {
                while let Some(data) = reader.next_data()? {
                    let bytes = data.chunk.len();
                    self.push(Item::Data(data), bytes)?;
                }
            }
        }
        self.push(Item::End(reader.warnings().clone()), 0)
    }

    fn push(&mut self, item: Item, bytes: usize) -> Result<(), Stop> {
        self.items.push_back(item);
        self.bytes += bytes;
        if self.items.len() < BATCH_ITEMS && self.bytes < BATCH_BYTES {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.bytes = 0;
        let items = std::mem::replace(&mut self.items, VecDeque::with_capacity(BATCH_ITEMS));
        self.sender.send(Ok(items)).map_err(|_| Stop::Gone)
    }
}
