//! Every bio is answered once, with what became of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Suite, Unit};
use crate::testing::mix;
use crate::{
    Batch, Bio, BlockDevice, BlockError, Buffer, Operation, Plug, PlugThreshold, Reason, Sector,
    read_exact_at, write_all_at,
};

impl Suite<'_> {
    pub(super) fn check_answers(&self) {
        self.what_is_out_of_range_fails_alone();
        self.partial_sectors_are_refused();
        self.dropping_the_plug_submits();
        self.chains_of_callbacks_stay_flat();
        self.more_bios_than_tags_are_all_answered();
        self.a_closed_device_answers_everything();
    }

    fn what_is_out_of_range_fails_alone(&self) {
        let (unit, device) = (self.unit, self.device(64));
        let [inside, across, beyond, far] =
            [Batch::new(), Batch::new(), Batch::new(), Batch::new()];
        let plug = Plug::new(&device);
        plug.submit(Bio::write(unit.sector(60), unit.filled(2, 1)).in_batch(&inside));
        plug.submit(Bio::write(unit.sector(62), unit.filled(4, 2)).in_batch(&across));
        plug.submit(Bio::write(unit.sector(66), unit.filled(1, 3)).in_batch(&beyond));
        let last = Sector((u64::MAX / unit.sectors - 1) * unit.sectors);
        plug.submit(Bio::read(last, Buffer::zeroed(unit.bytes(1))).in_batch(&far));
        plug.flush();
        inside.wait().expect("a write inside the device");
        for (batch, place, units) in [(across, 62, 4), (beyond, 66, 1)] {
            let error = batch.wait().expect_err("a write beyond the device");
            let capacity = unit.sector(64);
            assert!(
                matches!(error.reason, Reason::OutOfRange { capacity: end } if end == capacity)
            );
            assert_eq!(
                (error.operation, error.sector, error.length),
                (Operation::Write, unit.sector(place), unit.bytes(units) as u64)
            );
            assert!(!error.device.is_empty());
        }
        far.wait().expect_err("a read beyond every device");
        assert_eq!(unit.read(&*device, 60, 4), [1, 1, 0, 0]);
    }

    fn partial_sectors_are_refused(&self) {
        let (unit, device) = (self.unit, self.device(64));
        let refused = |result: Result<(), BlockError>| {
            let error = result.expect_err("a partial sector");
            assert!(matches!(error.reason, Reason::Misaligned { .. }));
        };
        refused(write_all_at(&*device, Sector(0), &[1; 100]));
        refused(read_exact_at(&*device, Sector(0), &mut [0; 513]));
        write_all_at(&*device, Sector(0), &[]).expect("a write of nothing");
        if unit.sectors > 1 {
            refused(write_all_at(&*device, Sector(1), &vec![1; unit.bytes(1)]));
            refused(write_all_at(&*device, Sector(0), &[1; 512]));
        }
        assert_eq!(unit.read(&*device, 0, 1), [0]);
    }

    fn dropping_the_plug_submits(&self) {
        let (unit, device) = (self.unit, self.device(64));
        let answers = Arc::new(AtomicU64::new(0));
        {
            let outer = Plug::new(&device);
            {
                let inner = Plug::new(&device);
                for place in [5, 9, 13] {
                    let answers = Arc::clone(&answers);
                    let bio = Bio::write(unit.sector(place), unit.filled(1, 4));
                    inner.submit(bio.on_complete(move |answer| {
                        assert!(answer.result.is_ok());
                        answers.fetch_add(1, Ordering::Relaxed);
                    }));
                }
            }
            assert_eq!(device.statistics().bios, 0, "an inner plug joins the outer one");
            drop(outer);
        }
        device.drain();
        assert_eq!(answers.load(Ordering::Relaxed), 3, "every bio is answered once");
        assert_eq!(unit.read(&*device, 9, 1), [4]);
    }

    /// Each callback submits the next bio; a device that answers at once must not nest them.
    fn chains_of_callbacks_stay_flat(&self) {
        /// A read of `length` bytes whose completion submits the next of `left` reads, and the last
        /// one `end`.
        fn link(device: Arc<dyn BlockDevice>, length: usize, left: u32, end: Bio) -> Bio {
            Bio::read(Sector(0), Buffer::zeroed(length)).on_complete(move |answer| {
                answer.result.expect("a read");
                let plug = Plug::new(&device);
                plug.submit(if left == 0 { end } else { link(device, length, left - 1, end) });
            })
        }
        let device = self.device(64);
        let batch = Batch::new();
        let end = Bio::flush().in_batch(&batch);
        let first = link(Arc::clone(&device), self.unit.bytes(1), 10_000, end);
        Plug::new(&device).submit(first);
        batch.wait().expect("a chain of reads");
    }

    /// Far more bios than can be in flight, from several threads, some of them bad. None is merged,
    /// since each leaves its plug at once.
    fn more_bios_than_tags_are_all_answered(&self) {
        const THREADS: u64 = 4;
        const BIOS: u64 = 500;
        let (unit, device) = (self.unit, self.device(256));
        let answers: Arc<Vec<AtomicU64>> =
            Arc::new((0..THREADS * BIOS).map(|_| AtomicU64::new(0)).collect());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (device, answers) = (&device, &answers);
                scope.spawn(move || {
                    let claim = (thread == 0).then(|| device.claim().expect("a queue"));
                    let plug = Plug::with_threshold(device, PlugThreshold { bios: 1, bytes: 0 });
                    for index in 0..BIOS {
                        submit_any(unit, &plug, thread * BIOS + index, answers);
                    }
                    drop((plug, claim));
                });
            }
        });
        device.drain();
        let answered = answers.iter().map(|answer| answer.load(Ordering::Relaxed));
        assert!(answered.into_iter().all(|count| count == 1), "every bio is answered once");
    }

    /// Closing while bios are under way: each ends well or not, once; later ones all fail.
    fn a_closed_device_answers_everything(&self) {
        const BIOS: u64 = 300;
        let (unit, device) = (self.unit, self.device(256));
        let [good, bad] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let submit = |place: u64| {
            let (good, bad) = (Arc::clone(&good), Arc::clone(&bad));
            let bio = Bio::write(unit.sector(place % 256), unit.filled(1, 1));
            let plug = Plug::with_threshold(&device, PlugThreshold { bios: 1, bytes: 0 });
            plug.submit(bio.on_complete(move |answer| {
                let count = if answer.result.is_ok() { good } else { bad };
                count.fetch_add(1, Ordering::Relaxed);
            }));
        };
        (0..BIOS).for_each(submit);
        device.close();
        let answered = || good.load(Ordering::Relaxed) + bad.load(Ordering::Relaxed);
        assert_eq!(answered(), BIOS, "closing waits for every answer");
        let before = bad.load(Ordering::Relaxed);
        (0..BIOS).for_each(submit);
        assert_eq!(bad.load(Ordering::Relaxed), before + BIOS, "a closed device serves nothing");
        let error = write_all_at(&*device, unit.sector(3), &vec![1; unit.bytes(2)]);
        let error = error.expect_err("a write to a closed device");
        let about = (error.operation, error.sector, error.length);
        assert_eq!(about, (Operation::Write, unit.sector(3), unit.bytes(2) as u64));
    }
}

/// Submits bio `number` of a random sequence, and counts its answer, which must be about it.
fn submit_any(unit: Unit, plug: &Plug, number: u64, answers: &Arc<Vec<AtomicU64>>) {
    let random = mix(number);
    // One in some twenty is beyond the end.
    let place = random % 270;
    let (sector, units) = (unit.sector(place), 1 + (random >> 16) % 3);
    let length = unit.bytes(units) as u64;
    let bio = match (random >> 32) % 8 {
        0 => Bio::write_zeroes(sector, length),
        1 => Bio::discard(sector, length),
        2 => Bio::flush(),
        3 | 4 => Bio::write(sector, unit.filled(units, random as u8)),
        _ => Bio::read(sector, Buffer::zeroed(unit.bytes(units))),
    };
    let (operation, sector, length) = (bio.operation(), bio.sector(), bio.length());
    let good = place + units <= 256 || operation == Operation::Flush;
    let answers = Arc::clone(answers);
    plug.submit(bio.on_complete(move |answer| {
        answers[number as usize].fetch_add(1, Ordering::Relaxed);
        assert_eq!((answer.operation, answer.sector), (operation, sector));
        let read = answer.buffer.map(|buffer| buffer.len() as u64);
        assert_eq!(read, (operation == Operation::Read).then_some(length));
        match answer.result {
            Ok(()) => assert!(good, "{operation} beyond the end succeeded"),
            Err(error) => {
                assert!(!good, "{error}");
                let about = (error.operation, error.sector, error.length);
                assert_eq!(about, (operation, sector, length));
            }
        }
    }));
}
