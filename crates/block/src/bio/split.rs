//! Bios in parts: several that together answer the one they were made of.
//!
//! A bio that does not fit its device is cut into parts, or copied for several devices. Each part
//! goes its own way. When the last one is answered, the whole bio is: with its addresses as its
//! submitter gave them, its buffer put together again, and the first error of any part. A part that
//! is cut again adds to the same whole, so there is one place where parts meet, however many
//! devices lie on the way.

use std::sync::Arc;

use super::body::{Bio, Receiver};
use super::join::Join;
use super::operation::Operation;
use crate::units::SECTOR_SIZE;

impl Bio {
    /// Cuts off the first `bytes` bytes: returns them as a bio, and keeps the rest. The receiver
    /// hears when both have been answered. Nothing is copied.
    ///
    /// # Panics
    /// When `bytes` is not a whole number of sectors, or does not leave a part on both sides.
    pub fn split_front(&mut self, bytes: u64) -> Self {
        assert!(
            0 < bytes && bytes < self.length() && bytes.is_multiple_of(SECTOR_SIZE),
            "a cut at {bytes} of {self:?}"
        );
        let receiver = self.shared_receiver();
        let mut front = self.sibling(receiver);
        if self.inner.segments.count() > 0 {
            let rest = self.inner.segments.split_off(bytes);
            front.inner.segments = std::mem::replace(&mut self.inner.segments, rest);
        }
        if let Some(buffer) = &mut self.inner.buffer {
            // The cut is inside memory.
            let rest = buffer.split_off(bytes as usize);
            front.inner.buffer = Some(std::mem::replace(buffer, rest));
        }
        if let Some(source) = &mut self.inner.source {
            front.inner.source = Some(source.clone());
            source.offset += bytes;
        }
        front.inner.length = bytes;
        let cut = bytes / SECTOR_SIZE;
        self.inner.sector.0 += cut;
        self.inner.origin.0 += cut;
        self.inner.length -= bytes;
        front
    }

    /// A second bio that does the same, for another device. The receiver hears when both have been
    /// answered. The memory of a write is shared.
    ///
    /// # Panics
    /// When the bio is a read, whose buffer has one owner.
    pub fn twin(&mut self) -> Self {
        let mut twin = self.copy();
        twin.inner.receiver = self.shared_receiver();
        twin
    }

    /// A bio that does the same and has no receiver.
    pub(crate) fn copy(&self) -> Self {
        assert!(
            self.operation() != Operation::Read,
            "a copy of {self:?}, whose buffer has one owner"
        );
        let mut copy = self.sibling(Receiver::None);
        copy.inner.segments = self.inner.segments.clone();
        copy.inner.source.clone_from(&self.inner.source);
        copy
    }

    /// A receiver for one more bio, beside which this one becomes a part.
    fn shared_receiver(&mut self) -> Receiver {
        self.inner.flags = self.inner.flags.of_part();
        match &self.inner.receiver {
            Receiver::None => return Receiver::None,
            Receiver::Part(join) => {
                join.add();
                return Receiver::Part(Arc::clone(join));
            }
            Receiver::Batch(_)
            | Receiver::Queue { .. }
            | Receiver::Callback(_)
            | Receiver::Interceptor(_) => {}
        }
        let receiver = std::mem::replace(&mut self.inner.receiver, Receiver::None);
        let whole = self.sibling(receiver);
        let join = Join::of_two(whole);
        self.inner.receiver = Receiver::Part(Arc::clone(&join));
        Receiver::Part(join)
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::bio::{Completion, FileRange, Reason};
    use crate::memory::{Buffer, SegmentList};
    use crate::units::Sector;

    fn completed(bio: Bio) -> (Bio, Arc<Mutex<Vec<Completion>>>) {
        let completions = Arc::new(Mutex::new(Vec::new()));
        let receiver = Arc::clone(&completions);
        (bio.on_complete(move |completion| receiver.lock().push(completion)), completions)
    }

    #[test]
    fn the_parts_of_a_clone_share_the_parts_of_a_file() {
        let file = Arc::new(std::fs::File::open("/dev/null").unwrap());
        let source = FileRange { file, offset: 8192 };
        let (mut rest, completions) = completed(Bio::clone_range(Sector(100), 8 * 512, source));
        let first = rest.split_front(2 * 512);
        let offset = |bio: &Bio| bio.source().map(|source| source.offset);
        assert_eq!((offset(&first), offset(&rest)), (Some(8192), Some(8192 + 1024)));
        assert_eq!((first.sector(), rest.sector()), (Sector(100), Sector(102)));
        assert_eq!(offset(&first.copy()), Some(8192));
        first.succeed();
        rest.succeed();
        assert!(completions.lock().pop().unwrap().result.is_ok());
    }

    #[test]
    fn the_parts_of_a_read_fill_one_buffer() {
        let buffer = Buffer::zeroed(16 * 512);
        let address = buffer.as_ptr();
        let (mut rest, completions) = completed(Bio::read(Sector(100), buffer));
        let first = rest.split_front(2 * 512);
        let mut second = rest.split_front(8 * 512);
        let half = second.split_front(4 * 512);
        let mut parts = [rest, first, half, second];
        let sectors = [(110, 6), (100, 2), (102, 4), (106, 4)];
        for (part, (sector, length)) in parts.iter_mut().zip(sectors) {
            assert_eq!((part.sector(), part.length()), (Sector(sector), length * 512));
            part.buffer_mut().unwrap().fill(sector as u8);
        }
        for part in parts {
            assert!(completions.lock().is_empty());
            part.succeed();
        }
        let completion = completions.lock().pop().unwrap();
        assert_eq!((completion.operation, completion.sector), (Operation::Read, Sector(100)));
        let buffer = completion.into_buffer().unwrap();
        assert_eq!((buffer.as_ptr(), buffer.len()), (address, 16 * 512));
        for (sector, bytes) in (100..).zip(buffer.chunks(512)) {
            let expected = match sector {
                100..102 => 100,
                102..106 => 102,
                106..110 => 106,
                _ => 110,
            };
            assert!(bytes.iter().all(|byte| *byte == expected));
        }
    }

    #[test]
    fn the_parts_of_a_write_share_its_memory() {
        let bytes: Vec<u8> = (0..4 * 512).map(|index| (index / 512) as u8).collect();
        let mut segments = SegmentList::from(Buffer::copy_of(&bytes[..700]));
        segments.push(Buffer::copy_of(&bytes[700..]).into());
        let (mut rest, completions) = completed(Bio::write(Sector(8), segments));
        rest = rest.force_unit_access();
        let front = rest.split_front(512);
        for (part, expected) in [(&front, &bytes[..512]), (&rest, &bytes[512..])] {
            let found: Vec<u8> =
                part.segments().iter().flat_map(|segment| segment.to_vec()).collect();
            assert_eq!(found, expected);
            assert!(part.is_force_unit_access());
        }
        assert_eq!((front.sector(), rest.sector()), (Sector(8), Sector(9)));
        rest.succeed();
        front.succeed();
        assert!(completions.lock().pop().unwrap().result.is_ok());
    }

    #[test]
    fn the_first_error_of_a_part_is_that_of_the_whole() {
        let (mut rest, completions) = completed(Bio::write_zeroes(Sector(4), 8 * 512));
        rest.remap(Sector(1000));
        let front = rest.split_front(512);
        let second = rest.split_front(512);
        rest.fail("leg", Reason::ReadOnly);
        drop(front);
        second.succeed();
        let completions = completions.lock();
        assert_eq!(completions.len(), 1);
        let error = completions[0].result.as_ref().unwrap_err();
        assert_eq!((error.sector, error.length), (Sector(4), 8 * 512));
        assert_eq!(&*error.device, "leg");
        assert!(matches!(error.reason, Reason::ReadOnly));
    }

    #[test]
    fn a_failed_read_gives_its_buffer_back() {
        let (mut rest, completions) = completed(Bio::read(Sector(0), Buffer::zeroed(4096)));
        let front = rest.split_front(512);
        front.fail("leg", Reason::ReadOnly);
        rest.succeed();
        let completion = completions.lock().pop().unwrap();
        assert_eq!(completion.buffer.map(|buffer| buffer.len()), Some(4096));
        assert!(completion.result.is_err());
    }

    #[test]
    fn twins_are_answered_together() {
        let (mut flush, completions) = completed(Bio::flush());
        let twins = [flush.twin(), flush.twin()];
        flush.succeed();
        assert!(completions.lock().is_empty());
        twins.into_iter().for_each(Bio::succeed);
        assert_eq!(completions.lock().len(), 1);
    }

    #[test]
    #[should_panic(expected = "a cut at 512")]
    fn a_cut_leaves_a_part_on_both_sides() {
        let _ = Bio::write_zeroes(Sector(0), 512).split_front(512);
    }
}
