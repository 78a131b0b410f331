//! Writes checkpoints to the journal, and buffers to their places, in the order that makes a crash
//! at any point harmless (docs/format/journal/writing.md#order-of-writes).
//!
//! One thread at a time is the writer. For each checkpoint it
//!
//! 1. closes it: no transaction runs meanwhile, and items are made straight from the buffers;
//! 2. waits for the file data that belongs to it, and flushes the device: data, and buffers in
//!    their places, are durable now;
//! 3. drops the latter from the list of dirty buffers, which gives the tail that the records
//!    publish;
//! 4. writes the records, at most eight at a time, and flushes before there are more of them than
//!    recovery searches for holes; flushes, if there are several; and writes the last, which holds
//!    the commit, with forced unit access.
//!
//! Blocks of the journal are used again only when a durable record says that they are behind the
//! tail.

use super::checkpoint::Checkpoint;
use super::head::FLIGHT;
use super::items::ItemWriter;
use super::journal::Journal;
use super::records::{RecordStream, Seal, SealedRecords};
use super::writer::Writer;
use crate::cache::BufferRef;
use crate::cache::WrittenBuffer;
use crate::error::Error;
use crate::format::Counters;
use crate::format::InodeCreateItem;
use crate::format::log_record::LOG_BLOCK;
use crate::units::{AgBlock, Lsn};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use undercroft_block::{Batch, Bio, Plug, Sector, Segment, SegmentList, flush};

/// Records in flight at a time: what recovery recognises as torn by a crash.
const RECORDS_IN_FLIGHT: usize = 8;

/// Bytes of buffers that are sent to their places in one go.
const PUSH_BYTES: usize = 8 << 20;

/// Memory of records that is kept for the next ones: finding memory, and zeroing it, takes as long
/// as filling it, and transactions wait meanwhile.
const SPARE_BYTES: usize = 16 << 20;

/// A checkpoint that was closed: its records, and what happens once they are durable.
struct Closed {
    sequence: u64,
    start: Lsn,
    stream: RecordStream,
    logged: Vec<BufferRef>,
    freed: Vec<BufferRef>,
    data: Vec<Batch>,
    has_data: bool,
}

impl Journal {
    /// Makes all commits so far durable. Does nothing if there are none.
    pub(super) fn write_checkpoint(&self, writer: &mut Writer) -> Result<(), Error> {
        self.failing(|| {
            let closed = {
                let _gate = self.gate.write();
                self.close_checkpoint(writer, false)?
            };
            closed.map_or(Ok(()), |closed| self.write_closed(writer, closed))
        })
    }

    /// Empties the journal while no transaction runs, so that nothing pins its tail. The caller
    /// holds the gate. The last record is one that says so, if `publish`.
    pub(super) fn write_everything(&self, writer: &mut Writer, publish: bool) -> Result<(), Error> {
        self.failing(|| {
            if let Some(closed) = self.close_checkpoint(writer, false)? {
                self.write_closed(writer, closed)?;
            }
            loop {
                let mut sent = 0;
                while let more @ 1.. = self.push(writer, Lsn::NULL)? {
                    sent += more;
                }
                // A copy on its way already may be older than the last logged change: the buffer is
                // written again when the older copy has arrived.
                if sent == 0 && writer.in_place.is_empty() {
                    break;
                }
                for (writes, _) in &writer.in_place {
                    writes.wait()?;
                }
                self.flush(writer)?;
            }
            if publish && let Some(closed) = self.close_checkpoint(writer, true)? {
                self.write_closed(writer, closed)?;
            }
            Ok(())
        })
    }

    /// Runs a part of the writer's work, if no other program has the volume by now; a failure ends
    /// all writing.
    pub(super) fn failing<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.poison.check()?;
        let alone = self.cache.device().check_alone().map_err(Error::from);
        let result = alone.and_then(|()| work());
        if let Err(error) = &result {
            self.fail(error);
        }
        result
    }

    /// Takes the open checkpoint and makes records of it. The caller holds the gate. With `cover`,
    /// a record is made in any case: of the superblock, unchanged, if there is nothing else.
    fn close_checkpoint(&self, writer: &mut Writer, cover: bool) -> Result<Option<Closed>, Error> {
        // A transaction that failed half-way said so before it left the gate.
        self.poison.check()?;
        let mut checkpoint = {
            let mut open = self.open.lock();
            if open.is_empty() && !cover {
                return Ok(None);
            }
            let next = Checkpoint::new(open.sequence + 1);
            self.open_sequence.store(next.sequence, Ordering::Release);
            std::mem::replace(&mut *open, next)
        };
        debug_assert_eq!(checkpoint.reserved, 0, "the gate keeps transactions out");
        if cover && checkpoint.has_no_items() {
            self.cover(&mut checkpoint);
        }
        let room = self.shape.checkpoint_bytes(checkpoint.bytes);
        let memory = std::mem::take(&mut writer.spare);
        let mut stream = RecordStream::new(self.shape, writer.transaction, memory, room);
        let start = writer.position;
        let logged = self.log_items(&mut checkpoint, start, &mut stream)?;
        let writes = Batch::new();
        if !checkpoint.direct.is_empty() {
            self.cache.write_directly(&checkpoint.direct, &writes)?;
            checkpoint.add_data(writes);
        }
        if !stream.is_empty() {
            stream.finish();
            debug_assert!(stream.len() <= room, "{} of {room} bytes", stream.len());
            let free = self.free_bytes.load(Ordering::Relaxed);
            let Some(rest) = free.checked_sub(stream.len()) else {
                return Err(Error::Busy(format!(
                    "a checkpoint of {} bytes does not fit the {free} free bytes of the journal",
                    stream.len()
                )));
            };
            self.free_bytes.store(rest, Ordering::Release);
        }
        let Checkpoint { sequence, freed, data, has_data, .. } = checkpoint;
        Ok(Some(Closed { sequence, start, stream, logged, freed, data, has_data }))
    }

    /// Adds the superblock to a checkpoint that is otherwise empty.
    fn cover(&self, checkpoint: &mut Checkpoint) {
        let mut content = self.superblock.content();
        content.changes.mark(0..1);
        content.log.checkpoint = checkpoint.sequence;
        content.stale_checksum = true;
        self.cache.count_dirty(&mut content);
        checkpoint.buffers.push(Arc::clone(&self.superblock));
        checkpoint.bytes += super::items::bound(&content, &self.geometry);
    }

    /// Makes the items of a checkpoint that starts at `lsn`; returns the buffers that are dirty
    /// from then on.
    fn log_items(
        &self,
        checkpoint: &mut Checkpoint,
        lsn: Lsn,
        stream: &mut RecordStream,
    ) -> Result<Vec<BufferRef>, Error> {
        let geometry = &*self.geometry;
        let mut items = ItemWriter { stream, geometry, lsn, region: Vec::new() };
        for chunk in &checkpoint.created {
            if !self.is_cancelled(chunk, checkpoint) {
                let mut region = Vec::with_capacity(InodeCreateItem::LEN);
                chunk.encode(&mut region);
                items.stream.region(&region);
            }
        }
        for done in &checkpoint.done {
            items.stream.region(done);
        }
        for removal in &checkpoint.removals {
            // In the place of a cluster there may be another by now.
            if checkpoint.cancels.contains_key(&removal.cluster) {
                removal.regions.iter().for_each(|region| items.stream.region(region));
            }
        }
        let mut logged = std::mem::take(&mut checkpoint.buffers);
        let mut failed = None;
        logged.retain(|buffer| {
            let mut content = buffer.content();
            if content.log.freed || failed.is_some() {
                return false;
            }
            failed = items.buffer(buffer.address(), &mut content).err();
            true
        });
        for (sector, sectors) in checkpoint.cancels.keys() {
            items.cancel(*sector, *sectors);
        }
        failed.map_or(Ok(logged), Err)
    }

    /// Whether inodes of a new chunk were freed again before its checkpoint was closed.
    fn is_cancelled(&self, chunk: &InodeCreateItem, checkpoint: &Checkpoint) -> bool {
        let unit = self.geometry.cluster_blocks();
        let sectors = unit * self.geometry.sectors_per_block();
        let mut blocks = (chunk.block.0..chunk.block.0 + chunk.blocks).step_by(unit as usize);
        blocks.any(|block| {
            let sector = self.geometry.ag_sector(chunk.ag, AgBlock(block));
            checkpoint.cancels.contains_key(&(sector, sectors))
        })
    }

    /// Writes a closed checkpoint and answers its tickets.
    fn write_closed(&self, writer: &mut Writer, closed: Closed) -> Result<(), Error> {
        for writes in &closed.data {
            writes.wait()?;
        }
        writer.unflushed |= closed.has_data;
        self.flush(writer)?;
        if !closed.stream.is_empty() {
            // Nothing older than this checkpoint is needed if nothing is dirty.
            let tail = writer.dirty.tail().unwrap_or(closed.start);
            let tail = writer.pinned.unwrap_or(tail);
            let sealed = closed.stream.seal(&Seal {
                uuid: self.geometry.uuid,
                position: closed.start,
                tail,
                previous_block: writer.previous_block,
            });
            let (last_block, end) = (sealed.last_block, sealed.end);
            self.write_records(writer, sealed)?;
            writer.previous_block = last_block;
            writer.position = end;
            writer.tail = tail;
            writer.transaction = writer.transaction.wrapping_add(1);
            writer.last_start = Some(closed.start);
            writer.dirty.insert(closed.start, closed.logged, &closed.freed);
            self.update_free(writer);
        }
        self.durable.store(closed.sequence, Ordering::Release);
        for busy in &self.busy {
            busy.set_durable(closed.sequence);
        }
        self.is_crowded.store(false, Ordering::Release);
        self.tickets.complete(closed.sequence, &Ok(()));
        Ok(())
    }

    /// Publishes how much of the journal can be written.
    pub(super) fn update_free(&self, writer: &Writer) {
        let used = self.shape.distance(writer.tail, writer.position);
        let free = (self.shape.bytes() - used).saturating_sub(self.shape.slack_bytes());
        self.free_bytes.store(free, Ordering::Release);
    }

    /// Makes everything durable that was written before, unless nothing was, and takes buffers that
    /// are in their places off the list.
    fn flush(&self, writer: &mut Writer) -> Result<(), Error> {
        if !writer.unflushed {
            return Ok(());
        }
        let done = |(writes, _): &mut (Batch, Vec<WrittenBuffer>)| writes.outstanding() == 0;
        let written: Vec<_> = writer.in_place.extract_if(.., done).collect();
        for (writes, _) in &written {
            writes.check()?;
        }
        flush(self.cache.device().as_ref())?;
        writer.unflushed = !writer.in_place.is_empty();
        written.iter().flat_map(|(_, buffers)| buffers).for_each(WrittenBuffer::set_durable);
        Ok(())
    }

    fn write_records(&self, writer: &mut Writer, sealed: SealedRecords) -> Result<(), Error> {
        let SealedRecords { bytes, records, .. } = sealed;
        let memory = Arc::new(bytes);
        let Some((last, others)) = records.split_last() else {
            return Ok(());
        };
        let mut unflushed = 0;
        for run in others.chunks(RECORDS_IN_FLIGHT) {
            let range = run[0].start..run[run.len() - 1].end;
            // Of writes that are not flushed a power cut may leave any part. Recovery, a kernel's
            // too, looks for holes only so far before the end.
            if unflushed + range.len() > FLIGHT as usize * LOG_BLOCK {
                flush(self.cache.device().as_ref())?;
                unflushed = 0;
            }
            unflushed += range.len();
            self.write_range(writer.position, &memory, range, false)?;
        }
        if !others.is_empty() {
            flush(self.cache.device().as_ref())?;
        }
        self.write_range(writer.position, &memory, last.clone(), true)?;
        writer.spare = Arc::into_inner(memory)
            .filter(|memory| memory.capacity() <= SPARE_BYTES)
            .unwrap_or_default();
        Ok(())
    }

    /// Writes a range of records of which the first byte of all goes to `position`, and waits.
    fn write_range(
        &self,
        position: Lsn,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
        durable: bool,
    ) -> Result<(), Error> {
        let writes = Batch::new();
        let plug = Plug::new(self.cache.device());
        // The part behind the end of the journal is written at its start.
        let before_end = (self.shape.blocks - position.block()) as usize * LOG_BLOCK;
        let cut = before_end.clamp(range.start, range.end);
        let first = self.shape.start.0 + u64::from(position.block());
        let places = [
            (first + (range.start / LOG_BLOCK) as u64, range.start..cut),
            (self.shape.start.0 + ((cut - before_end.min(cut)) / LOG_BLOCK) as u64, cut..range.end),
        ];
        for (sector, part) in places {
            if !part.is_empty() {
                let records = SegmentList::from(Segment::shared(memory, part));
                let records = self.cache.in_fitting_memory(records);
                let bio = Bio::write(Sector(sector), records);
                let bio = if durable { bio.force_unit_access() } else { bio };
                plug.submit(bio.in_batch(&writes));
            }
        }
        drop(plug);
        Ok(writes.wait()?)
    }

    /// Sends the oldest dirty buffers that pin positions up to `end` to their places, as many as
    /// are good at a time; returns how many.
    pub(super) fn push(&self, writer: &mut Writer, end: Lsn) -> Result<usize, Error> {
        let durable = self.durable.load(Ordering::Acquire);
        let due = writer.dirty.oldest(end, durable, PUSH_BYTES);
        let writes = Batch::new();
        let written = self.cache.write_in_place(due, durable, &writes)?;
        let count = written.len();
        if count > 0 {
            writer.unflushed = true;
            writer.in_place.push((writes, written));
        }
        Ok(count)
    }

    /// Writes the superblock with true counters and the record that says that the volume was
    /// unmounted. The journal is empty, and the caller holds the gate.
    pub(super) fn write_unmount(
        &self,
        writer: &mut Writer,
        counters: &Counters,
    ) -> Result<(), Error> {
        self.flush(writer)?;
        if let Some(tail) = writer.dirty.tail() {
            // A defect: the journal stays as it is, and is replayed.
            let what = format!("buffers logged from {tail:?} on are not in their places");
            return Err(Error::Busy(what));
        }
        let mut content = self.superblock.content();
        counters.encode(&mut content.bytes);
        content.log.lsn = writer.last_start.unwrap_or(content.log.lsn);
        self.cache.count_dirty(&mut content);
        drop(content);
        let writes = Batch::new();
        self.cache.write_directly(std::slice::from_ref(&self.superblock), &writes)?;
        writes.wait()?;
        flush(self.cache.device().as_ref())?;
        let sealed = RecordStream::unmount(self.shape, writer.transaction).seal(&Seal {
            uuid: self.geometry.uuid,
            position: writer.position,
            tail: writer.position,
            previous_block: writer.previous_block,
        });
        let (last_block, end) = (sealed.last_block, sealed.end);
        self.write_records(writer, sealed)?;
        (writer.previous_block, writer.position, writer.tail) = (last_block, end, end);
        writer.transaction = writer.transaction.wrapping_add(1);
        writer.last_start = None;
        self.update_free(writer);
        Ok(())
    }
}
