//! Reads return the data written, on every path.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, mpsc};

use super::Suite;
use crate::device::visit_leaves;
use crate::{
    Batch, Bio, Buffer, Plug, SECTOR_SIZE, Segment, SegmentList, flush, splice_at, write_all_at,
};

impl Suite<'_> {
    pub(super) fn check_data(&self) {
        self.a_new_device_reads_as_zeroes();
        self.neighbours_leave_as_one_request();
        self.the_last_of_overlapping_writes_wins();
        self.zeroes_and_discards_spare_their_neighbours();
        self.flush_and_forced_unit_access_answer();
        self.threads_do_not_disturb_each_other();
        self.one_large_bio_is_served();
        self.reads_by_place_have_the_same_bytes();
        self.what_is_spliced_is_read();
    }

    fn a_new_device_reads_as_zeroes(&self) {
        let device = self.device(64);
        assert_eq!(device.capacity(), self.unit.sector(64));
        assert!(self.unit.read(&*device, 0, 64).iter().all(|&byte| byte == 0));
    }

    fn neighbours_leave_as_one_request(&self) {
        let (unit, device) = (self.unit, self.device(64));
        let before = device.statistics();
        let batch = Batch::new();
        let plug = Plug::new(&device);
        for place in [3, 1, 2, 0, 10, 12, 11] {
            let bio = Bio::write(unit.sector(place), unit.filled(1, place as u8 + 1));
            plug.submit(bio.in_batch(&batch));
        }
        batch.wait().expect("writes");
        let passed = device.statistics() - before;
        let bytes = 7 * unit.bytes(1) as u64;
        assert!(passed.bios >= 7 && passed.bytes_written >= bytes, "{passed:?}");
        let mut leaves = 0;
        visit_leaves(device.layer(), &mut |_| leaves += 1);
        // Devices over several leaves keep several copies, or spread the range.
        let whole = leaves == 1 && device.limits().max_segments >= 8;
        assert!(!whole || passed.requests == 2 || passed.bios > 7, "{passed:?}");
        assert!(passed.requests < passed.bios, "{passed:?}");
        assert_eq!(unit.read(&*device, 0, 5), [1, 2, 3, 4, 0]);
        assert_eq!(unit.read(&*device, 10, 3), [11, 12, 13]);
    }

    fn the_last_of_overlapping_writes_wins(&self) {
        let (unit, device) = (self.unit, self.device(64));
        let batch = Batch::new();
        let plug = Plug::new(&device);
        for round in 1..=100 {
            for (place, byte) in [(0, round), (4, round + 100)] {
                let bio = Bio::write(unit.sector(place), unit.filled(8, byte));
                plug.submit(bio.in_batch(&batch));
            }
        }
        batch.wait().expect("writes");
        assert_eq!(unit.read(&*device, 0, 12), [[100; 4], [200; 4], [200; 4]].concat());
    }

    fn zeroes_and_discards_spare_their_neighbours(&self) {
        let (unit, device) = (self.unit, self.device(64));
        for durable in [false, true] {
            write_all_at(&*device, unit.sector(0), &vec![7; unit.bytes(64)]).expect("a write");
            let batch = Batch::new();
            let plug = Plug::new(&device);
            let length = unit.bytes(20) as u64;
            let bios =
                [Bio::write_zeroes(unit.sector(3), length), Bio::discard(unit.sector(33), length)];
            for bio in bios {
                let bio = if durable { bio.force_unit_access() } else { bio };
                plug.submit(bio.in_batch(&batch));
            }
            batch.wait().expect("zeroes and discard");
            let expected = [&[7; 3][..], &[0; 20], &[7; 10]].concat();
            assert_eq!(unit.read(&*device, 0, 33), expected);
            assert_eq!(unit.read(&*device, 53, 11), [7; 11]);
        }
    }

    fn flush_and_forced_unit_access_answer(&self) {
        let (unit, device) = (self.unit, self.device(64));
        let batch = Batch::new();
        let plug = Plug::new(&device);
        let write = Bio::write(unit.sector(5), unit.filled(1, 9)).force_unit_access();
        plug.submit(write.in_batch(&batch));
        plug.submit(Bio::flush().in_batch(&batch));
        batch.wait().expect("a write and a flush");
        let before = device.statistics().flushes;
        flush(&*device).expect("a flush");
        assert!(device.statistics().flushes > before);
        assert_eq!(unit.read(&*device, 5, 1), [9]);
    }

    fn threads_do_not_disturb_each_other(&self) {
        const THREADS: u64 = 4;
        const UNITS: u64 = 128;
        let (unit, device) = (self.unit, self.device(THREADS * UNITS));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let device = &device;
                scope.spawn(move || {
                    let claim = (thread % 2 == 1).then(|| device.claim().expect("a queue"));
                    let batch = Batch::new();
                    let plug = Plug::new(device);
                    for index in 0..UNITS {
                        let place = unit.sector(thread * UNITS + (index * 37) % UNITS);
                        let bio = Bio::write(place, unit.filled(1, thread as u8 + 1));
                        plug.submit(bio.in_batch(&batch));
                    }
                    batch.wait().expect("writes of one thread");
                    drop((plug, claim));
                });
            }
        });
        for thread in 0..THREADS {
            let found = unit.read(&*device, thread * UNITS, UNITS);
            assert!(found.iter().all(|&byte| u64::from(byte) == thread + 1));
        }
    }

    /// More bytes and more pieces than the limits say.
    fn one_large_bio_is_served(&self) {
        const BYTES: u64 = 4 << 20;
        let unit = self.unit;
        let units = BYTES / unit.bytes(1) as u64;
        let device = self.device(units);
        let piece = Arc::new(Buffer::copy_of(&vec![5; unit.bytes(1)]));
        let pieces: SegmentList =
            (0..units).map(|_| Segment::new(&piece, 0..unit.bytes(1))).collect();
        let batch = Batch::new();
        Plug::new(&device).submit(Bio::write(unit.sector(0), pieces).in_batch(&batch));
        batch.wait().expect("a large write");
        assert!(unit.read(&*device, 0, units).iter().all(|&byte| byte == 5));
        let zeroes = Bio::write_zeroes(unit.sector(1), BYTES - 2 * SECTOR_SIZE * unit.sectors);
        Plug::new(&device).submit(zeroes.in_batch(&batch));
        batch.wait().expect("a large write of zeroes");
        let found = unit.read(&*device, 0, units);
        let expected = |place: u64| if place == 0 || place == units - 1 { 5 } else { 0 };
        assert!((0..units).zip(found).all(|(place, byte)| byte == expected(place)));
    }

    /// Also what a device does not take, which has to leave all as it was.
    fn what_is_spliced_is_read(&self) {
        let (unit, device) = (self.unit, self.device(64));
        write_all_at(&*device, unit.sector(0), &vec![1; unit.bytes(64)]).expect("a write");
        let mut expected = vec![1; 64];
        for (byte, place, units) in [(2, 0, 64), (3, 8, 8), (4, 12, 16), (5, 63, 1), (6, 60, 8)] {
            let length = unit.bytes(units) as u64;
            let mut splice = |target: &std::fs::File, offset, most: usize| {
                target.write_at(&vec![byte; most.min(unit.bytes(3))], offset)
            };
            if let Some(done) = splice_at(&*device, unit.sector(place), length, &mut splice) {
                done.expect("a splice");
                expected[place as usize..][..units as usize].fill(byte);
            }
        }
        assert_eq!(unit.read(&*device, 0, 64), expected);
    }

    /// Wherever their bytes are, alone, beside others, and where no unit is like its neighbours.
    fn reads_by_place_have_the_same_bytes(&self) {
        let (unit, device) = (self.unit, self.device(64));
        let bytes: Vec<u8> = (0..64).flat_map(|place| vec![place + 1; unit.bytes(1)]).collect();
        write_all_at(&*device, unit.sector(0), &bytes).expect("a write");
        let plug = Plug::new(&device);
        let (told, hears) = mpsc::channel();
        let ranges = [(0, 3), (3, 20), (23, 7), (40, 1), (50, 14)];
        for (place, units) in ranges {
            let (told, buffer) = (told.clone(), Buffer::zeroed(unit.bytes(units)));
            let bio = Bio::read(unit.sector(place), buffer);
            let bio = if place == 23 { bio } else { bio.by_place() };
            plug.submit(bio.on_complete(move |completion| {
                // Nobody hears it once a check has failed.
                let _ = told.send((place, units, completion));
            }));
        }
        plug.flush();
        for _ in ranges {
            let (place, units, mut completion) = hears.recv().expect("an answer");
            let located = completion.place.take();
            let mut found = completion.into_buffer().expect("a read");
            if let Some(range) = located {
                range.file.read_exact_at(&mut found, range.offset).expect("bytes at their place");
            }
            let expected = &bytes[unit.bytes(place)..][..unit.bytes(units)];
            assert!(found[..] == *expected, "{units} units at {place}");
        }
    }
}
