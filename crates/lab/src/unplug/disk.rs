//! A disk that holds bios back to let them leave together: the plug of a device, as block layers
//! had it before plugs were per thread.
//!
//! The first bio plugs the disk; a threshold, a delay, or a submitter that cannot wait unplugs it.
//! Unplugging a device made of disks asks every one of them, most of which are not plugged. So a
//! flag tells, without the lock, whether there is anything to do. A race is harmless: the thread
//! that plugs the disk at that moment sees to it that it is unplugged, at the latest by the delay.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use undercroft_block::{
    Below, Bio, BlockDevice, Layer, Limits, Operation, Part, Plug, Sector, Stacked, flush_plugs,
};

/// Bios that unplug a disk: Linux's value of 2008.
pub(super) const THRESHOLD: usize = 4;
/// Time that unplugs a disk: Linux's value of 2008.
pub(super) const DELAY: Duration = Duration::from_millis(3);

/// How a disk that may not be plugged is unplugged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnplugMode {
    /// Looks under the lock of the bios held back.
    Locked,
    /// Tests a flag, and takes no lock of a disk that is not plugged.
    TestFirst,
}

/// The plug of a disk, over the disk itself.
pub(super) struct PluggedDisk {
    disk: [Arc<dyn BlockDevice>; 1],
    held: Mutex<Vec<Bio>>,
    /// Whether bios are held back; changed under their lock.
    plugged: AtomicBool,
    mode: UnplugMode,
    /// Times that the lock was taken; written under it.
    locks: AtomicU64,
    timer: UnplugTimer,
    this: Weak<Self>,
}

impl PluggedDisk {
    /// A plug over `disk`, whose delay `timer` sees to.
    pub(super) fn new(
        disk: Arc<dyn BlockDevice>,
        mode: UnplugMode,
        timer: &UnplugTimer,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            disk: [disk],
            held: Mutex::default(),
            plugged: AtomicBool::new(false),
            mode,
            locks: AtomicU64::new(0),
            timer: timer.clone(),
            this: Weak::clone(this),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Bio>> {
        let held = self.held.lock();
        self.locks.store(self.locks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        held
    }

    /// Times that the lock was taken so far.
    pub(super) fn locks(&self) -> u64 {
        self.locks.load(Ordering::Relaxed)
    }

    /// Sends on the bios held back, if there are any.
    pub(super) fn unplug(&self) {
        // Relaxed: a thread that plugged the disk sees its own write; for others the order is not
        // defined.
        if self.mode == UnplugMode::TestFirst && !self.plugged.load(Ordering::Relaxed) {
            return;
        }
        let mut held = self.lock();
        self.plugged.store(false, Ordering::Relaxed);
        let held = std::mem::take(&mut *held);
        if held.is_empty() {
            return;
        }
        let plug = Plug::new(&self.disk[0]);
        held.into_iter().for_each(|bio| plug.submit(bio));
    }
}

impl BlockDevice for PluggedDisk {
    fn name(&self) -> &str {
        self.disk[0].name()
    }

    fn capacity(&self) -> Sector {
        self.disk[0].capacity()
    }

    fn limits(&self) -> Limits {
        self.disk[0].limits()
    }

    fn is_read_only(&self) -> bool {
        self.disk[0].is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for PluggedDisk {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        let urgent = bio.operation() == Operation::Flush;
        let mut held = self.lock();
        let first = held.is_empty();
        held.push(bio);
        if urgent || held.len() >= THRESHOLD {
            self.plugged.store(false, Ordering::Relaxed);
            let held = std::mem::take(&mut *held);
            held.into_iter().for_each(|bio| below.submit(&*self.disk[0], bio));
            return;
        }
        self.plugged.store(true, Ordering::Relaxed);
        drop(held);
        if first {
            self.timer.unplug_later(Weak::clone(&self.this));
        }
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        visit(Part { device: &*self.disk[0], sectors, is_written: true });
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.disk
    }

    fn wait_answered(&self) {
        self.unplug();
        flush_plugs();
    }
}

impl Drop for PluggedDisk {
    fn drop(&mut self) {
        self.unplug();
    }
}

/// A thread that unplugs disks when their delay is over; it ends with the last handle.
#[derive(Clone)]
pub(super) struct UnplugTimer {
    due: Sender<(Instant, Weak<PluggedDisk>)>,
}

impl UnplugTimer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses one.
    pub(super) fn start() -> std::io::Result<Self> {
        let (due, plugged) = channel();
        thread::Builder::new().name("unplug-timer".into()).spawn(move || run(&plugged))?;
        Ok(Self { due })
    }

    fn unplug_later(&self, disk: Weak<PluggedDisk>) {
        // The thread is there as long as there are handles.
        let _ = self.due.send((Instant::now() + DELAY, disk));
    }
}

/// The delay is the same for all, so they are due in the order in which they come.
fn run(plugged: &Receiver<(Instant, Weak<PluggedDisk>)>) {
    for (time, disk) in plugged {
        thread::sleep(time.saturating_duration_since(Instant::now()));
        if let Some(disk) = disk.upgrade() {
            disk.unplug();
        }
    }
}

#[cfg(test)]
mod tests {
    use undercroft_block::{Batch, Buffer, Leaf, NullOptions, QueueOptions};

    use super::*;

    fn disk(mode: UnplugMode) -> (Arc<PluggedDisk>, Arc<dyn BlockDevice>) {
        let null = Leaf::null(NullOptions::default(), QueueOptions::default()).unwrap();
        let disk = PluggedDisk::new(Arc::new(null), mode, &UnplugTimer::start().unwrap());
        (Arc::clone(&disk), disk)
    }

    fn submit(device: &Arc<dyn BlockDevice>, count: usize, batch: &Batch) {
        let plug = Plug::new(device);
        for number in 0..count {
            // Nothing that merges.
            let sector = Sector(number as u64 * 64);
            plug.submit(Bio::read(sector, Buffer::zeroed(512)).in_batch(batch));
        }
    }

    #[test]
    fn bios_leave_at_the_threshold_on_unplug_and_after_the_delay() {
        let (disk, device) = disk(UnplugMode::TestFirst);
        let batch = Batch::new();
        submit(&device, THRESHOLD, &batch);
        batch.wait().unwrap();
        // The delay sends it on, with nothing else to do so.
        submit(&device, 1, &batch);
        batch.wait().unwrap();
        submit(&device, 1, &batch);
        disk.unplug();
        batch.wait().unwrap();
        submit(&device, 1, &batch);
        device.drain();
        assert_eq!(batch.outstanding(), 0);
        assert_eq!(device.statistics().bios, THRESHOLD as u64 + 3);
    }

    #[test]
    fn a_flush_takes_along_what_waits() {
        let (_, device) = disk(UnplugMode::TestFirst);
        let batch = Batch::new();
        let plug = Plug::new(&device);
        plug.submit(Bio::read(Sector(0), Buffer::zeroed(512)).in_batch(&batch));
        plug.submit(Bio::flush().in_batch(&batch));
        drop(plug);
        batch.wait().unwrap();
    }

    #[test]
    fn only_the_locked_mode_takes_the_lock_of_a_disk_that_is_not_plugged() {
        for (mode, locks) in [(UnplugMode::TestFirst, 0), (UnplugMode::Locked, 100)] {
            let (disk, _) = disk(mode);
            (0..100).for_each(|_| disk.unplug());
            assert_eq!(disk.locks(), locks, "{mode:?}");
        }
    }

    #[test]
    fn a_disk_that_goes_takes_nothing_along() {
        let (disk, device) = disk(UnplugMode::TestFirst);
        let batch = Batch::new();
        submit(&device, 1, &batch);
        drop((disk, device));
        batch.wait().unwrap();
    }
}
