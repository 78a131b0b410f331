//! A device that fails where and when a test says.

mod fault;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{mix, tear};
use crate::bio::{Bio, Operation, Reason};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::threads::timer;
use crate::units::{Limits, SECTOR_SIZE, Sector};

pub use fault::Fault;
use fault::{Answer, Effect};

/// Hands bios to the device below, except those that meet a [`Fault`].
pub struct FaultyDevice {
    below: [Arc<dyn BlockDevice>; 1],
    /// With the number of bios that matched so far.
    faults: Vec<(Fault, AtomicU64)>,
    injected: AtomicU64,
    late: Arc<Late>,
}

/// Bios that are to be answered late, and are not yet.
#[derive(Default)]
struct Late {
    count: Mutex<usize>,
    none: Condvar,
}

/// A fault that a bio met, and its number among those that match.
struct Strike<'f> {
    fault: &'f Fault,
    number: u64,
}

impl FaultyDevice {
    /// `below` with `faults`. Of several that apply to one bio, all that make it late do, and the
    /// first of the others.
    #[must_use]
    pub fn new(below: Arc<dyn BlockDevice>, faults: impl IntoIterator<Item = Fault>) -> Self {
        let faults = faults.into_iter().map(|fault| (fault, AtomicU64::new(0))).collect();
        Self { below: [below], faults, injected: AtomicU64::new(0), late: Arc::default() }
    }

    /// Number of bios that met a fault so far.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }

    /// What `bio` meets, counting it for every fault that it matches.
    fn strike(&self, bio: &Bio) -> (Duration, Option<Strike<'_>>) {
        let mut delay = Duration::ZERO;
        let mut strike = None;
        for (fault, matched) in self.faults.iter().filter(|(fault, _)| fault.matches(bio)) {
            let number = matched.fetch_add(1, Ordering::Relaxed);
            match fault.effect {
                _ if !fault.strikes(number) => {}
                Effect::Late(more) => delay += more,
                _ => strike = strike.or(Some(Strike { fault, number })),
            }
        }
        (delay, strike)
    }

    /// Makes `bio` be answered at least `delay` after its submission.
    fn delay(&self, bio: &mut Bio, delay: Duration) {
        let time = Instant::now() + delay;
        let late = Arc::clone(&self.late);
        *late.count.lock() += 1;
        bio.intercept(move |bio, result| {
            timer::at(time, move || {
                bio.answer(result);
                let mut count = late.count.lock();
                *count -= 1;
                if *count == 0 {
                    late.none.notify_all();
                }
            });
        });
    }

    /// Lets some sectors of `bio` through.
    fn tear<'d>(&'d self, mut bio: Bio, random: u64, below: &mut Below<'d>) {
        let Some(end) = bio.end() else { return bio.succeed() };
        for kept in tear(&(bio.sector()..end), random) {
            if kept.start > bio.sector() {
                let lost = (kept.start.0 - bio.sector().0) * SECTOR_SIZE;
                bio.split_front(lost).succeed();
            }
            if kept.end == end {
                return below.submit(&*self.below[0], bio);
            }
            let part = bio.split_front((kept.end.0 - kept.start.0) * SECTOR_SIZE);
            below.submit(&*self.below[0], part);
        }
        bio.succeed();
    }
}

impl BlockDevice for FaultyDevice {
    fn name(&self) -> &str {
        self.below[0].name()
    }

    fn capacity(&self) -> Sector {
        self.below[0].capacity()
    }

    fn limits(&self) -> Limits {
        self.below[0].limits()
    }

    fn is_read_only(&self) -> bool {
        self.below[0].is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for FaultyDevice {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(mut bio) = bio.admit(self) else { return };
        let (delay, strike) = self.strike(&bio);
        if !delay.is_zero() || strike.is_some() {
            self.injected.fetch_add(1, Ordering::Relaxed);
        }
        if !delay.is_zero() {
            self.delay(&mut bio, delay);
        }
        let Some(Strike { fault, number }) = strike else {
            return below.submit(&*self.below[0], bio);
        };
        if let Answer::Error(error) = fault.answer {
            let device: Arc<str> = self.name().into();
            bio.intercept(move |bio, _| {
                bio.fail(&device, Reason::from(std::io::Error::from(error)));
            });
        }
        match fault.effect {
            // A flush has no sectors to be wrong about.
            _ if bio.operation() == Operation::Flush => bio.succeed(),
            Effect::Nothing | Effect::Late(_) => bio.succeed(),
            Effect::Torn { seed } => self.tear(bio, mix(seed ^ mix(number)), below),
            Effect::Misdirected { by } => {
                let room = self.capacity().0 - bio.length() / SECTOR_SIZE + 1;
                bio.remap(Sector((bio.sector().0 + by) % room));
                below.submit(&*self.below[0], bio);
            }
        }
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        // Where a fault may lead elsewhere, too, that is the fault.
        visit(Part { device: &*self.below[0], sectors, is_written: true });
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.below
    }

    fn wait_answered(&self) {
        let mut count = self.late.count.lock();
        while *count > 0 {
            self.late.none.wait(&mut count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{MemoryDevice, flush, read_buffer, write_all_at};

    fn faulty(faults: impl IntoIterator<Item = Fault>) -> FaultyDevice {
        FaultyDevice::new(Arc::new(MemoryDevice::new(1 << 20)), faults)
    }

    #[test]
    fn a_bad_range_fails_writes_there_and_nothing_else() {
        let range = Sector(8)..Sector(16);
        let disk =
            faulty([Fault::new().on(Operation::Write).at(range).error(io::ErrorKind::StorageFull)]);
        assert!(write_all_at(&disk, Sector(7), &[1; 512]).is_ok());
        let error = write_all_at(&disk, Sector(7), &[1; 1024]).unwrap_err();
        assert!(error.is_no_space());
        assert!(read_buffer(&disk, Sector(8), 512).unwrap().iter().all(|&byte| byte == 0));
        assert!(flush(&disk).is_ok());
        assert_eq!(disk.injected(), 1);
    }

    #[test]
    fn counted_faults_strike_when_told() {
        let disk = faulty([Fault::new().on(Operation::Flush).nth(1)]);
        assert!(flush(&disk).is_ok());
        assert!(flush(&disk).is_err());
        assert!(flush(&disk).is_ok());
        let disk = faulty([Fault::new().from_nth(2)]);
        let outcomes: Vec<_> = (0..4).map(|_| flush(&disk).is_ok()).collect();
        assert_eq!(outcomes, [true, true, false, false]);
    }

    #[test]
    fn random_faults_repeat_with_their_seed() {
        let outcomes = |seed| -> Vec<bool> {
            let disk = faulty([Fault::new().random(seed, 4)]);
            (0..64).map(|_| flush(&disk).is_ok()).collect()
        };
        assert_eq!(outcomes(1), outcomes(1));
        assert_ne!(outcomes(1), outcomes(2));
        assert!((32..64).contains(&outcomes(1).iter().filter(|&&ok| ok).count()));
    }

    /// The first byte of each of the first sectors.
    fn firsts(disk: &FaultyDevice, sectors: usize) -> Vec<u8> {
        let bytes = read_buffer(disk, Sector(0), sectors * 512).unwrap();
        bytes.chunks(512).map(|sector| sector[0]).collect()
    }

    #[test]
    fn a_torn_write_leaves_some_of_its_sectors() {
        let torn = |seed| Fault::new().on(Operation::Write).torn(seed);
        let mut outcomes = Vec::new();
        for seed in 0..32 {
            let disk = faulty([torn(seed)]);
            let error = write_all_at(&disk, Sector(0), &[1; 8 * 512]).unwrap_err();
            assert_eq!((error.sector, error.length), (Sector(0), 8 * 512));
            let kept = firsts(&disk, 9);
            assert_eq!(kept[8], 0);
            let silent = faulty([torn(seed).silently()]);
            write_all_at(&silent, Sector(0), &[1; 8 * 512]).unwrap();
            assert_eq!(firsts(&silent, 9), kept);
            outcomes.push(kept.iter().filter(|byte| **byte == 1).count());
        }
        assert!(outcomes.contains(&0) && outcomes.contains(&8));
        assert!(outcomes.iter().any(|kept| (1..8).contains(kept)));
    }

    #[test]
    fn a_misdirected_write_lands_elsewhere() {
        let disk = faulty([Fault::new().on(Operation::Write).misdirected(3)]);
        write_all_at(&disk, Sector(1), &[1; 1024]).unwrap();
        assert_eq!(firsts(&disk, 7), [0, 0, 0, 0, 1, 1, 0]);
        write_all_at(&disk, Sector(2047), &[2; 512]).unwrap();
        assert_eq!(firsts(&disk, 4), [0, 0, 2, 0]);
    }

    #[test]
    fn a_lost_write_seems_done() {
        let disk = faulty([Fault::new().on(Operation::Write).silently().nth(0)]);
        write_all_at(&disk, Sector(0), &[1; 512]).unwrap();
        assert_eq!(firsts(&disk, 1), [0]);
    }

    #[test]
    fn a_script_decides() {
        let disk =
            faulty([Fault::new().when(|bio| bio.sector().0 % 2 == 1 && bio.length() == 512)]);
        let outcomes: Vec<_> =
            (0..4).map(|sector| write_all_at(&disk, Sector(sector), &[1; 512]).is_ok()).collect();
        assert_eq!(outcomes, [true, false, true, false]);
    }

    #[test]
    fn a_late_answer_is_waited_for() {
        let delay = Duration::from_millis(20);
        let disk = faulty([Fault::new().on(Operation::Write).late(delay)]);
        let start = Instant::now();
        let (bio, waiter) = Bio::write(Sector(0), crate::Buffer::copy_of(&[1; 512])).waited();
        crate::plug::submit_directly(&disk, bio);
        disk.drain();
        assert!(start.elapsed() >= delay);
        waiter.wait().result.unwrap();
        assert_eq!(firsts(&disk, 1), [1]);
    }
}
