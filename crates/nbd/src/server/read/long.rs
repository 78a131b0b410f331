//! Long reads: in parts, each of which goes by a pipe or by memory.

use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::{Bio, BlockError, Buffer, Completion, Plug, SECTOR_SIZE, Sector};

use super::part::Part;
use super::{Arrived, MOST_PIPED, Read, submit_again};

/// Bytes of a part: what a pipe takes.
const PART: usize = MOST_PIPED as usize;

/// A long read of a client on its way.
struct LongRead {
    read: Read,
    state: Mutex<State>,
}

struct State {
    parts: Vec<Option<Part>>,
    /// Those that have not come.
    left: usize,
    error: Option<BlockError>,
}

/// Reads `read` into `buffer` where bytes have to be in memory.
pub(crate) fn submit(read: Read, plug: &Plug, mut buffer: Buffer) {
    let count = buffer.len().div_ceil(PART);
    let state = State { parts: (0..count).map(|_| None).collect(), left: count, error: None };
    let piped = read.pipes.as_ref().map_or(0, |pipes| pipes.available());
    let long = Arc::new(LongRead { read, state: Mutex::new(state) });
    long.read.outbox.quota.begin();
    for index in 0..count {
        let rest = buffer.split_off(PART.min(buffer.len()));
        let bio = long.part(index, std::mem::replace(&mut buffer, rest));
        let bio = if index < piped { bio.by_place() } else { bio };
        let long = Arc::clone(&long);
        plug.submit(bio.on_complete(move |completion| long.ended(index, completion)));
    }
}

impl LongRead {
    /// A read of the part `index`.
    fn part(&self, index: usize, buffer: Buffer) -> Bio {
        // `PART` is a number of whole sectors.
        let sectors = (index * PART) as u64 / SECTOR_SIZE;
        Bio::read(Sector(self.read.range.sector().0 + sectors), buffer)
    }

    fn ended(self: Arc<Self>, index: usize, completion: Completion) {
        let arrived = self.read.arrived(completion);
        let mut state = self.state.lock();
        match arrived {
            Ok(Arrived::Part(part)) => state.parts[index] = Some(part),
            Ok(Arrived::Again(buffer)) => {
                drop(state);
                return self.begin_again(index, buffer);
            }
            Err(error) => state.error = state.error.take().or(Some(error)),
        }
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        let (parts, error) = (std::mem::take(&mut state.parts), state.error.take());
        drop(state);
        self.read.answer(error.map_or_else(|| Ok(parts.into_iter().flatten().collect()), Err));
    }

    /// Begins the part `index` again, by memory.
    fn begin_again(self: Arc<Self>, index: usize, buffer: Buffer) {
        let (export, bio) = (Arc::clone(&self.read.export), self.part(index, buffer));
        submit_again(&export, bio.on_complete(move |completion| self.ended(index, completion)));
    }
}
