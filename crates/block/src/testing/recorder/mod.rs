//! A recorder of writes and flushes, for crash tests.
//!
//! A [`Recorder`] records every bio that changes the disk, with its data, in the order in which
//! bios are submitted and answered, and hands it on. A [`Recording`] then walks through these
//! events, and at each point makes the disks that a crash there could leave: with writes that were
//! not flushed dropped, kept, or torn.
//!
//! By the contract of a device, two things are durable: a completed write that asked for forced
//! unit access, and the bios that a completed flush covers. It covers every bio that completed
//! before the flush was submitted, and those that the thread of the flush submitted before it.
//!
//! ```
//! use std::sync::Arc;
//! use undercroft_block::testing::recorder::{Event, Recorder, Unflushed};
//! use undercroft_block::{BlockDevice, MemoryDevice, Sector, flush, read_exact_at, write_all_at};
//!
//! let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 20));
//! let recorder = Recorder::new(disk);
//!
//! // What is tested: a record, then a second one that is acknowledged when it is on the disk.
//! write_all_at(&recorder, Sector(0), b"one".repeat(512).as_slice())?;
//! flush(&recorder)?;
//! recorder.mark("one is safe");
//! write_all_at(&recorder, Sector(3), b"two".repeat(512).as_slice())?;
//!
//! // The test: cut the power after every event, whatever happens to the caches.
//! let mut recording = recorder.recording().expect("not bounded");
//! let mut safe = false;
//! while let Some(event) = recording.step() {
//!     safe |= matches!(event, Event::Mark(text) if &**text == "one is safe");
//!     let torn = (0..4).map(|seed| Unflushed::Torn { seed });
//!     for unflushed in [Unflushed::Dropped, Unflushed::Kept].into_iter().chain(torn) {
//!         let disk = recording.disk(unflushed);
//!         let mut bytes = [0; 3 * 512];
//!         read_exact_at(&*disk, Sector(0), &mut bytes)?;
//!         assert!(!safe || bytes == *b"one".repeat(512));
//!     }
//! }
//! assert!(safe);
//! # Ok::<(), undercroft_block::BlockError>(())
//! ```

mod contents;
mod disk;
mod event;
mod log;
mod recording;
mod replay;

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::bio::{Bio, BlockError, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::statistics::Statistics;
use crate::units::{Limits, Sector};

pub use disk::{CrashDisk, CrashDriver};
pub use event::{Change, Event};
pub use log::Overflow;
pub use recording::Recording;
pub use replay::Unflushed;

use contents::Contents;
use log::Log;

/// Hands every bio to the device below, and records those that change it.
///
/// A disk that a recording makes has zeroes where nothing was recorded, unless the recorder was
/// made by [`with_contents`](Self::with_contents).
pub struct Recorder {
    below: [Arc<dyn BlockDevice>; 1],
    log: Arc<Mutex<Log>>,
}

impl Recorder {
    /// A recorder on `below`, which holds zeroes, that keeps everything.
    #[must_use]
    pub fn new(below: Arc<dyn BlockDevice>) -> Self {
        Self::start(below, Contents::default())
    }

    /// A recorder on `below`, which holds something already: it is read once.
    ///
    /// # Errors
    /// Those of reading.
    pub fn with_contents(below: Arc<dyn BlockDevice>) -> Result<Self, BlockError> {
        let contents = Contents::of(&*below)?;
        Ok(Self::start(below, contents))
    }

    /// Keeps the latest events only, in about `bytes` bytes: older ones become the contents with
    /// which the recording starts, in memory once for each sector. Writes that were not flushed
    /// cannot become contents; when they alone need more, recording ends with [`Overflow`].
    #[must_use]
    pub fn bounded(self, bytes: u64) -> Self {
        self.log.lock().bound(bytes);
        self
    }

    fn start(below: Arc<dyn BlockDevice>, contents: Contents) -> Self {
        let log = Log::new(below.capacity(), contents);
        Self { below: [below], log: Arc::new(Mutex::new(log)) }
    }

    /// Records `text` between the events, for instance that a call has returned.
    pub fn mark(&self, text: &str) {
        self.log.lock().push(Event::Mark(text.into()));
    }

    /// The events recorded so far.
    ///
    /// # Errors
    /// When the bound was too small.
    pub fn recording(&self) -> Result<Recording, Overflow> {
        self.log.lock().recording()
    }
}

impl Change {
    fn of(bio: &Bio) -> Self {
        // A copy: the memory may be that of a pool, where others wait for it.
        let bytes = || bio.segments().iter().flat_map(|segment| segment.iter().copied());
        let data = (bio.operation() == Operation::Write).then(|| bytes().collect());
        Self {
            operation: bio.operation(),
            force_unit_access: bio.is_force_unit_access(),
            sector: bio.sector(),
            length: bio.length(),
            data,
            thread: std::thread::current().id(),
        }
    }
}

impl BlockDevice for Recorder {
    fn name(&self) -> &str {
        self.below[0].name()
    }

    fn capacity(&self) -> Sector {
        self.below[0].capacity()
    }

    fn limits(&self) -> Limits {
        // What is shared later cannot be recorded as bytes.
        Limits { clones_ranges: false, ..self.below[0].limits() }
    }

    fn is_read_only(&self) -> bool {
        self.below[0].is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }

    /// What reached the device below.
    fn statistics(&self) -> Statistics {
        self.below[0].statistics()
    }
}

impl Stacked for Recorder {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(mut bio) = bio.admit(self) else { return };
        if bio.operation() != Operation::Read {
            let change = Change::of(&bio);
            let number = self.log.lock().submit(change);
            let log = Arc::clone(&self.log);
            bio.intercept(move |bio, result| {
                log.lock().push(Event::Completed { number, succeeded: result.is_ok() });
                bio.answer(result);
            });
        }
        below.submit(&*self.below[0], bio);
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        visit(Part { device: &*self.below[0], sectors, is_written: true });
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fault, FaultyDevice};
    use crate::{
        Batch, Buffer, MemoryDevice, Plug, flush, read_buffer, read_exact_at, write_all_at,
    };

    fn memory() -> Arc<dyn BlockDevice> {
        Arc::new(MemoryDevice::new(64 << 10))
    }

    fn kinds(recording: &Recording) -> Vec<String> {
        recording
            .events()
            .iter()
            .map(|event| match event {
                Event::Submitted { number, change } => format!("{number} {change:?}"),
                Event::Completed { number, succeeded } => format!("{number} {succeeded}"),
                Event::Mark(text) => text.to_string(),
            })
            .collect()
    }

    #[test]
    fn everything_that_changes_the_disk_is_recorded() {
        let faulty = FaultyDevice::new(memory(), [Fault::new().on(Operation::Discard)]);
        let recorder: Arc<Recorder> = Arc::new(Recorder::new(Arc::new(faulty)));
        let device: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
        read_buffer(&*device, Sector(0), 512).unwrap();
        let batch = Batch::new();
        let plug = Plug::new(&device);
        plug.submit(
            Bio::write(Sector(2), Buffer::zeroed(1024)).force_unit_access().in_batch(&batch),
        );
        plug.submit(Bio::write_zeroes(Sector(0), 512).in_batch(&batch));
        plug.submit(Bio::write(Sector(1 << 20), Buffer::zeroed(512)).on_complete(|_| ()));
        batch.wait().unwrap();
        recorder.mark("here");
        plug.submit(Bio::discard(Sector(9), 512).on_complete(|_| ()));
        plug.submit(Bio::flush().in_batch(&batch));
        batch.wait().unwrap();
        assert_eq!(
            kinds(&recorder.recording().unwrap()),
            [
                "0 write of 1024 bytes at sector 2, durable",
                "1 write of zeroes of 512 bytes at sector 0",
                "1 true",
                "0 true",
                "here",
                "2 discard of 512 bytes at sector 9",
                "2 false",
                "3 flush of 0 bytes at sector 0",
                "3 true",
            ]
        );
    }

    #[test]
    fn a_disk_of_a_crash_is_a_device_of_its_own() {
        let below = memory();
        write_all_at(&*below, Sector(1), &[1; 512]).unwrap();
        let recorder = Recorder::with_contents(below).unwrap();
        write_all_at(&recorder, Sector(2), &[2; 512]).unwrap();
        flush(&recorder).unwrap();
        write_all_at(&recorder, Sector(3), &[3; 512]).unwrap();
        let mut recording = recorder.recording().unwrap();
        recording.finish();
        let firsts = |disk: &dyn BlockDevice| {
            let mut bytes = [0; 5 * 512];
            read_exact_at(disk, Sector(0), &mut bytes).unwrap();
            bytes.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>()
        };
        let disk = recording.disk(Unflushed::Dropped);
        assert_eq!(disk.capacity(), Sector(128));
        assert_eq!(firsts(&*disk), [0, 1, 2, 0, 0]);
        write_all_at(&*disk, Sector(0), &[9; 512]).unwrap();
        let (bio, waiter) = Bio::write_zeroes(Sector(1), 1024).waited();
        Plug::new(&disk).submit(bio);
        waiter.wait().result.unwrap();
        assert_eq!(firsts(&*disk), [9, 0, 0, 0, 0]);
        assert_eq!(firsts(&*recording.disk(Unflushed::Kept)), [0, 1, 2, 3, 0]);
        assert_eq!(firsts(&recorder), [0, 1, 2, 3, 0]);
    }

    #[test]
    fn a_bounded_recorder_forgets_the_oldest_events() {
        let recorder = Recorder::new(memory()).bounded(32 << 10);
        for round in 0..64 {
            write_all_at(&recorder, Sector(round), &[round as u8 + 1; 4096]).unwrap();
            flush(&recorder).unwrap();
        }
        let mut recording = recorder.recording().unwrap();
        assert!(recording.events().len() < 64 * 4);
        recording.finish();
        let disk = recording.disk(Unflushed::Dropped);
        let sector = read_buffer(&*disk, Sector(63), 512).unwrap();
        assert_eq!(sector[..], [64; 512]);
    }
}
