//! Data of files, read from the layers a buffer at a time.
//!
//! The files of a stretch of the tree are wanted together. What lies close together in a layer is
//! read in one piece, with the headers between, in the order of the layer; so a layer in the order
//! of the tree is read as one stream, and one in another order costs a call for each file.

use super::tree::{Body, Contents, Tree};
use super::walk::Walk;
use crate::ahead::{Filling, Stop};
use crate::chunk::{Chunk, Data};
use crate::entry::{Entry, Kind};
use crate::pool::{BUFFER_SIZE, BufferPool};
use crate::region::Region;
use std::io;
use std::sync::Arc;

/// Most bytes between two pieces of data that are read with them: some headers and padding.
const GAP: u64 = 4096;
/// Most entries of a stretch.
const STRETCH_ENTRIES: usize = 512;

/// A layer cannot be read.
#[derive(Debug)]
pub(crate) struct ReadFault {
    /// Counted from 0.
    pub(crate) layer: u32,
    pub(crate) source: io::Error,
}

/// Data of a file that is wanted.
struct Piece {
    layer: u32,
    position: u64,
    length: u64,
    /// Offset in the file.
    offset: u64,
    /// Offset in the buffer.
    place: usize,
}

/// How much of `left` bytes from `offset` of a file is wanted at once when there is room for `room`:
/// all, or whole blocks up to the end of one.
fn fitting(offset: u64, left: u64, room: u64) -> u64 {
    const BLOCK: u64 = 4096;
    if left <= room { left } else { ((offset + room) / BLOCK * BLOCK).saturating_sub(offset) }
}

/// A stretch of the tree.
pub(crate) struct Gather<'a> {
    layers: &'a [Region],
    pool: BufferPool,
    /// Entries with the number of pieces that follow them.
    entries: Vec<(Option<Entry>, usize)>,
    pieces: Vec<Piece>,
    /// Room in the buffer, counted as if each piece were read with a gap before it.
    room: u64,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(layers: &'a [Region]) -> Self {
        let (entries, pieces) = (Vec::new(), Vec::new());
        let room = BUFFER_SIZE as u64;
        Self { layers, pool: BufferPool::default(), entries, pieces, room }
    }

    /// Delivers all entries of a walk with their data.
    pub(crate) fn run(
        mut self,
        tree: &Tree,
        mut walk: Walk<'_>,
        filling: &mut Filling<ReadFault>,
    ) -> Result<(), Stop<ReadFault>> {
        while let Some((entry, id)) = walk.next() {
            let is_file = matches!(entry.kind, Kind::Regular { .. });
            self.entries.push((Some(entry), 0));
            if let (true, Body::Regular(contents)) = (is_file, &tree.node(id).body) {
                self.want(contents, filling)?;
            }
            if self.entries.len() >= STRETCH_ENTRIES {
                self.deliver(filling)?;
            }
        }
        self.deliver(filling)
    }

    /// Wants the data of the entry that came last.
    fn want(
        &mut self,
        contents: &Contents,
        filling: &mut Filling<ReadFault>,
    ) -> Result<(), Stop<ReadFault>> {
        let mut position = contents.position;
        for range in contents.ranges() {
            let (mut offset, mut left) = (range.offset, range.length);
            while left > 0 {
                let mut length = fitting(offset, left, self.room.saturating_sub(GAP));
                if length == 0 {
                    self.deliver(filling)?;
                    // What follows belongs to the entry that was delivered.
                    self.entries.push((None, 0));
                    length = fitting(offset, left, self.room - GAP);
                }
                self.room -= length + GAP;
                self.pieces.push(Piece {
                    layer: contents.layer,
                    position,
                    length,
                    offset,
                    place: 0,
                });
                if let Some((_, pieces)) = self.entries.last_mut() {
                    *pieces += 1;
                }
                position += length;
                offset += length;
                left -= length;
            }
        }
        Ok(())
    }

    /// Reads what is wanted, and delivers it.
    fn deliver(&mut self, filling: &mut Filling<ReadFault>) -> Result<(), Stop<ReadFault>> {
        let buffer = self.read()?;
        let mut pieces = self.pieces.drain(..);
        for (entry, count) in self.entries.drain(..) {
            if let Some(entry) = entry {
                filling.entry(entry)?;
            }
            for piece in pieces.by_ref().take(count) {
                // A piece is no longer than the buffer.
                let range = piece.place..piece.place + piece.length as usize;
                let chunk = Chunk::new(Arc::clone(&buffer), range);
                filling.data(Data { offset: piece.offset, chunk })?;
            }
        }
        self.room = BUFFER_SIZE as u64;
        Ok(())
    }

    /// Fills a buffer with the pieces, and notes their places in it.
    fn read(&mut self) -> Result<Arc<Vec<u8>>, ReadFault> {
        if self.pieces.is_empty() {
            return Ok(Arc::default());
        }
        let Self { layers, pool, pieces, .. } = self;
        let (shared, ()) = pool.filled(|buffer| fill(buffer, layers, pieces))?;
        Ok(shared)
    }
}

/// Reads the pieces into `buffer`, and notes their places in it.
fn fill(buffer: &mut [u8], layers: &[Region], pieces: &mut [Piece]) -> Result<(), ReadFault> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&index| (pieces[index].layer, pieces[index].position));
    let (mut at, mut next) = (0, 0);
    while next < order.len() {
        // A run of pieces with small gaps is read at once.
        let first = &pieces[order[next]];
        let (layer, start) = (first.layer, first.position);
        let mut end = start;
        while let Some(&index) = order.get(next) {
            let piece = &mut pieces[index];
            if piece.layer != layer || piece.position > end + GAP {
                break;
            }
            // Both lie in the buffer: the room was counted with a gap for each piece.
            piece.place = at + (piece.position - start) as usize;
            end = end.max(piece.position + piece.length);
            next += 1;
        }
        let length = (end - start) as usize;
        let region = &layers[layer as usize];
        region
            .read_exact_at(&mut buffer[at..at + length], start)
            .map_err(|source| ReadFault { layer, source })?;
        at += length;
    }
    Ok(())
}
