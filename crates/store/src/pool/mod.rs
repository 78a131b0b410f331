//! Pieces of a disk in memory, and those on their way.
//!
//! Whoever reads takes the pieces that are in memory, waits for those that are on their way, and has the others
//! fetched: from the cache in a directory, or from the origin. A fetch is of one group at most, so that one
//! lock keeps other processes from fetching the same. A reader that goes on where it ended has more
//! fetched ahead (`streams`).

mod memory;
mod plan;
mod streams;

use crate::client::spawn;
use crate::disk_cache::{DiskCache, PIECE};
use crate::error::StoreError;
use crate::origin::{GROUP, Origin};
use crate::traffic::Counts;
use memory::{Flight, Memory, Piece, Slot};
use parking_lot::{Condvar, Mutex};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use streams::Streams;

/// Told once what does not stop anything, such as a cache that cannot be written.
pub(crate) type Note = fn(&str);

/// The pieces of a disk.
pub(crate) struct Pool {
    origin: Box<dyn Origin>,
    disk: Option<Arc<DiskCache>>,
    state: Mutex<State>,
    note: Note,
    has_noted: AtomicBool,
    /// Nobody reads any more.
    is_closed: AtomicBool,
    /// Fetches that another process can have from the cache when they are done.
    fetching: Mutex<usize>,
    fetched: Condvar,
}

#[derive(Default)]
struct State {
    memory: Memory,
    streams: Streams,
}

impl Pool {
    pub(crate) fn new(origin: Box<dyn Origin>, disk: Option<Arc<DiskCache>>, note: Note) -> Self {
        Self {
            origin,
            disk,
            state: Mutex::default(),
            note,
            has_noted: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            fetching: Mutex::new(0),
            fetched: Condvar::new(),
        }
    }

    /// Ends reading. What is being fetched gets into the cache, or would be fetched again by the next process;
    /// what was to be fetched later is not.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let mut fetching = self.fetching.lock();
        while *fetching > 0 && self.disk.is_some() {
            self.fetched.wait(&mut fetching);
        }
    }

    pub(crate) fn origin(&self) -> &dyn Origin {
        &*self.origin
    }

    /// Gives a piece that is known already.
    pub(crate) fn give(&self, number: u64, bytes: &[u8]) {
        self.state.lock().memory.keep(number, bytes.into());
    }

    /// Fills memory with the bytes of the disk from a place on, all of which are in it.
    pub(crate) fn read<'m>(
        self: &Arc<Self>,
        mut at: u64,
        length: u64,
        mut memory: impl Iterator<Item = &'m mut [u8]>,
    ) -> Result<(), StoreError> {
        let pieces = at / PIECE..(at + length).div_ceil(PIECE);
        let slots = self.take(pieces)?;
        let mut slots = slots.iter();
        let mut piece: Option<Option<Piece>> = None;
        memory.try_for_each(|mut memory| {
            while !memory.is_empty() {
                let offset = at % PIECE;
                if offset == 0 || piece.is_none() {
                    piece = slots.next().map(Slot::wait).transpose()?;
                }
                // No longer than the memory.
                let here = (PIECE - offset).min(memory.len() as u64) as usize;
                let (now, rest) = memory.split_at_mut(here);
                match piece.as_ref().and_then(Option::as_ref) {
                    Some(piece) => {
                        now.copy_from_slice(&piece[offset as usize..offset as usize + here]);
                    }
                    None => now.fill(0),
                }
                at += here as u64;
                memory = rest;
            }
            Ok(())
        })
    }

    /// The pieces of a range, there or on their way.
    fn take(self: &Arc<Self>, wanted: Range<u64>) -> Result<Vec<Slot>, StoreError> {
        let mut state = self.state.lock();
        let mut flights = self.launch(&mut state.memory, wanted.clone());
        let slots = wanted.clone().map(|number| match self.origin.is_zero(number) {
            true => Slot::Zero,
            false => state.memory.slot(number),
        });
        let slots: Vec<_> = slots.collect();
        let ahead = state.streams.ahead(wanted, self.origin.end());
        let later = self.launch(&mut state.memory, ahead);
        drop(state);
        // This thread would only wait: it does one of them itself.
        let own = flights.pop();
        for flight in flights.into_iter().chain(later) {
            let pool = Arc::clone(self);
            spawn(move || pool.fly(&flight))?;
        }
        if let Some(flight) = own {
            self.fly(&flight);
        }
        Ok(slots)
    }

    /// Makes flights for the pieces of a range that are neither there nor on their way.
    fn launch(&self, memory: &mut Memory, wanted: Range<u64>) -> Vec<Arc<Flight>> {
        let is_missing = |number| !self.origin.is_zero(number) && !memory.has(number);
        let missing: Vec<u64> = wanted.filter(|number| is_missing(*number)).collect();
        let ranges = plan::fetches(&missing, &*self.origin);
        let flights = ranges.into_iter().map(|pieces| memory.launch(pieces));
        flights.collect()
    }

    /// Brings the pieces of a flight, or its error.
    fn fly(&self, flight: &Flight) {
        let brought = self.bring(flight.pieces.clone());
        self.state.lock().memory.land(flight, &brought);
        flight.end(brought);
    }

    fn bring(&self, pieces: Range<u64>) -> Result<Vec<Piece>, StoreError> {
        if let Some(found) = self.cached(&pieces) {
            return Ok(found);
        }
        let Some(disk) = &self.disk else { return self.fetch(pieces) };
        let _lock = disk.lock_group(&self.origin.key(pieces.start / GROUP * GROUP));
        // Another process may have fetched them while this one waited for the lock.
        if let Some(found) = self.cached(&pieces) {
            return Ok(found);
        }
        *self.fetching.lock() += 1;
        let brought = self.fetch_for(disk, pieces);
        *self.fetching.lock() -= 1;
        self.fetched.notify_all();
        brought
    }

    /// Fetches pieces, and keeps them for others.
    fn fetch_for(&self, disk: &DiskCache, pieces: Range<u64>) -> Result<Vec<Piece>, StoreError> {
        let fetched = self.fetch(pieces.clone())?;
        let kept = pieces.zip(&fetched).filter(|(number, _)| !self.origin.is_zero(*number));
        for (number, piece) in kept {
            if let Err(error) = disk.put(&self.origin.key(number), piece) {
                if !self.has_noted.swap(true, Ordering::Relaxed) {
                    (self.note)(&format!("the cache cannot be written ({error}); reading goes on"));
                }
                break;
            }
        }
        Ok(fetched)
    }

    /// All of these pieces from the cache in a directory.
    fn cached(&self, pieces: &Range<u64>) -> Option<Vec<Piece>> {
        let disk = self.disk.as_ref()?;
        let one = |number| {
            let length = self.origin.piece_length(number) as usize;
            if self.origin.is_zero(number) {
                return Some(Piece::from(vec![0; length]));
            }
            disk.get(&self.origin.key(number), length).map(Piece::from)
        };
        let found = pieces.clone().map(one).collect::<Option<Vec<_>>>()?;
        let bytes = found.iter().map(|piece| piece.len() as u64).sum();
        Counts::add(&self.origin.client().counts().cached, bytes);
        Some(found)
    }

    fn fetch(&self, pieces: Range<u64>) -> Result<Vec<Piece>, StoreError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(StoreError::local(self.origin.name(), &"it was closed"));
        }
        let bytes = self.origin.fetch(pieces.clone())?;
        let expected: u64 = pieces.map(|number| self.origin.piece_length(number)).sum();
        if bytes.len() as u64 != expected {
            let (object, found) = (self.origin.name().to_owned(), bytes.len() as u64);
            return Err(StoreError::Length { object, expected, found });
        }
        Ok(bytes.chunks(PIECE as usize).map(Piece::from).collect())
    }
}
