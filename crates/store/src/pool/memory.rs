//! Pieces in memory, as many as there is room for, and flights that bring others.

use crate::error::StoreError;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Pieces that are kept.
const KEPT: usize = 256;

/// The bytes of a piece.
pub(super) type Piece = Arc<[u8]>;

/// Pieces by their numbers.
#[derive(Default)]
pub(super) struct Memory {
    pieces: HashMap<u64, Place>,
    /// Pieces that are there.
    kept: usize,
    /// Counts uses: what was used least lately goes first.
    clock: u64,
}

enum Place {
    Here { piece: Piece, used: u64 },
    Coming(Arc<Flight>),
}

/// Pieces that are brought together.
pub(super) struct Flight {
    pub(super) pieces: Range<u64>,
    result: Mutex<Option<Result<Vec<Piece>, StoreError>>>,
    ended: Condvar,
}

/// Where a reader has a piece from.
pub(super) enum Slot {
    Zero,
    Here(Piece),
    Coming(Arc<Flight>, u64),
}

impl Memory {
    pub(super) fn has(&self, number: u64) -> bool {
        self.pieces.contains_key(&number)
    }

    /// A piece for a reader. It is there, or on its way.
    pub(super) fn slot(&mut self, number: u64) -> Slot {
        self.clock += 1;
        match self.pieces.get_mut(&number) {
            Some(Place::Here { piece, used }) => {
                *used = self.clock;
                Slot::Here(Arc::clone(piece))
            }
            Some(Place::Coming(flight)) => Slot::Coming(Arc::clone(flight), number),
            None => Slot::Zero,
        }
    }

    /// Puts pieces on their way.
    pub(super) fn launch(&mut self, pieces: Range<u64>) -> Arc<Flight> {
        let (result, ended) = (Mutex::new(None), Condvar::new());
        let flight = Arc::new(Flight { pieces: pieces.clone(), result, ended });
        for number in pieces {
            // What is there already stays, so that its memory is not counted twice.
            self.pieces.entry(number).or_insert_with(|| Place::Coming(Arc::clone(&flight)));
        }
        flight
    }

    /// Takes in what a flight brought; after an error its pieces can be asked for again.
    pub(super) fn land(&mut self, flight: &Flight, brought: &Result<Vec<Piece>, StoreError>) {
        for (index, number) in flight.pieces.clone().enumerate() {
            let is_own = |place: &Place| matches!(place, Place::Coming(other) if std::ptr::eq(&raw const **other, flight));
            if !self.pieces.get(&number).is_some_and(is_own) {
                continue;
            }
            self.pieces.remove(&number);
            if let Some(piece) = brought.as_ref().ok().and_then(|pieces| pieces.get(index)) {
                self.keep(number, Arc::clone(piece));
            }
        }
    }

    pub(super) fn keep(&mut self, number: u64, piece: Piece) {
        self.clock += 1;
        let used = self.clock;
        if let Some(Place::Here { .. }) = self.pieces.insert(number, Place::Here { piece, used }) {
            return;
        }
        self.kept += 1;
        if self.kept > KEPT {
            let last_use = |(number, place): (&u64, &Place)| match place {
                Place::Here { used, .. } => Some((*used, *number)),
                Place::Coming(_) => None,
            };
            if let Some((_, oldest)) = self.pieces.iter().filter_map(last_use).min() {
                self.pieces.remove(&oldest);
                self.kept -= 1;
            }
        }
    }
}

impl Flight {
    /// Gives readers what was brought.
    pub(super) fn end(&self, result: Result<Vec<Piece>, StoreError>) {
        *self.result.lock() = Some(result);
        self.ended.notify_all();
    }

    fn wait(&self, number: u64) -> Result<Option<Piece>, StoreError> {
        let mut result = self.result.lock();
        loop {
            match &*result {
                // One that brought pieces brought all of its own.
                Some(Ok(pieces)) => {
                    let index = (number - self.pieces.start) as usize;
                    return Ok(pieces.get(index).cloned());
                }
                Some(Err(error)) => return Err(error.clone()),
                None => self.ended.wait(&mut result),
            }
        }
    }
}

impl Slot {
    /// The piece, or `None` if it is zeroes.
    pub(super) fn wait(&self) -> Result<Option<Piece>, StoreError> {
        match self {
            Self::Zero => Ok(None),
            Self::Here(piece) => Ok(Some(Arc::clone(piece))),
            Self::Coming(flight, number) => flight.wait(*number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_goes_first() {
        let mut memory = Memory::default();
        for number in 0..KEPT as u64 {
            memory.keep(number, Piece::from([1]));
        }
        assert!(matches!(memory.slot(0), Slot::Here(_)));
        memory.keep(1000, Piece::from([2]));
        assert!(memory.has(0) && !memory.has(1) && memory.has(1000));
        assert_eq!(memory.pieces.len(), KEPT);
    }

    #[test]
    fn an_error_is_for_those_who_wait_and_no_others() {
        let mut memory = Memory::default();
        let flight = memory.launch(3..5);
        let slot = memory.slot(4);
        let brought = Err(StoreError::Changed { object: "x".into() });
        memory.land(&flight, &brought);
        flight.end(brought);
        assert!(slot.wait().is_err());
        assert!(!memory.has(3) && !memory.has(4));
    }
}
