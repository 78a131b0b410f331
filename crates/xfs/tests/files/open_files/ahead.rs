//! Data that is read ahead of its readers.

use super::stand::{BLOCK, NOW, check_clean, find, make, open, read_lent};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use undercroft_block::stack::{Delay, Slowness};
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation, Sector};
use undercroft_xfs::ops::{MappedExtent, extent_map};
use undercroft_xfs::{Error, OpenFile, Volume};

const LATENCY: Duration = Duration::from_millis(1);

/// A volume open for reading on a device that answers late, with one file `file`.
struct Slow {
    file: OpenFile,
    model: Vec<u8>,
    /// Sectors of its data.
    sectors: Vec<Range<u64>>,
    /// Bytes of the file that were read from the device.
    read: Arc<AtomicU64>,
}

/// A file of `len` bytes, in one piece or with a hole behind each block.
fn slow(len: usize, in_pieces: bool, damaged: Option<usize>) -> Slow {
    let (device, volume) = open(256 << 20);
    let file = make(&volume, "file").unwrap();
    let mut model: Vec<u8> = (0..len).map(|index| (index / 511) as u8 | 1).collect();
    if in_pieces {
        for at in (BLOCK..len).step_by(2 * BLOCK) {
            let end = len.min(at + BLOCK);
            model[at..end].fill(0);
        }
        for at in (0..len).step_by(2 * BLOCK) {
            let bytes = Arc::new(model[at..len.min(at + BLOCK)].to_vec());
            file.write_direct(at as u64, &bytes, 0..bytes.len(), NOW).unwrap();
        }
        file.truncate(len as u64, NOW).unwrap();
    } else {
        file.write_direct(0, &Arc::new(model.clone()), 0..len, NOW).unwrap();
    }
    let sectors = {
        let state = file.inode().read();
        let extents = extent_map(&volume, &state).unwrap();
        let place = |mapped: &MappedExtent| {
            let first = volume.geometry().sector(mapped.extent.start).0;
            first..first + u64::from(mapped.extent.len) * 8
        };
        extents.iter().map(place).collect::<Vec<_>>()
    };
    drop(file);
    volume.close().unwrap();
    check_clean(&device);

    let read = Arc::new(AtomicU64::new(0));
    let (count, data) = (Arc::clone(&read), sectors.clone());
    let counted = Fault::new().on(Operation::Read).when(move |bio| {
        if data.iter().any(|range| range.contains(&bio.sector().0)) {
            count.fetch_add(bio.length(), Ordering::Relaxed);
        }
        false
    });
    let broken = damaged.map(|at| {
        let sector = sectors[0].start + (at / 512) as u64;
        Fault::new().on(Operation::Read).at(Sector(sector)..Sector(sector + 1))
    });
    let faulty = FaultyDevice::new(device, std::iter::once(counted).chain(broken));
    let slowness = Slowness { latency: LATENCY, bandwidth: None };
    let device: Arc<dyn BlockDevice> = Arc::new(Delay::new(slowness, Arc::new(faulty)));
    let volume = Arc::new(Volume::open(device).unwrap());
    let number = find(&volume, "file").unwrap();
    let file = OpenFile::open(&volume, number).unwrap();
    Slow { file, model, sectors, read }
}

impl Slow {
    fn check(&self, at: usize, len: usize) {
        let mut bytes = vec![0; len];
        let read = self.file.read(at as u64, &mut bytes).unwrap();
        let end = self.model.len().min(at + len);
        assert!(bytes[..read] == self.model[at.min(end)..end], "{len} bytes at {at}");
    }

    fn check_lent(&self, at: usize, len: usize) {
        let mut bytes = vec![0; len];
        let read = read_lent(&self.file, at as u64, &mut bytes).unwrap();
        let end = self.model.len().min(at + len);
        assert!(bytes[..read] == self.model[at.min(end)..end], "{len} bytes at {at}");
    }

    fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

#[test]
fn a_reader_that_goes_on_is_ahead_and_reads_nothing_twice() {
    let len = 6 << 20;
    let slow = slow(len, false, None);
    let (mut at, mut most) = (0, 0);
    while at < len {
        slow.check(at, 32 << 10);
        at += 32 << 10;
        most = most.max(slow.read() - at as u64);
    }
    assert!(most >= 1 << 20, "at most {most} bytes were ahead");
    assert_eq!(slow.read(), len as u64);
}

#[test]
fn a_reader_that_jumps_gets_what_it_asks_for() {
    let slow = slow(8 << 20, false, None);
    let mut asked = 0;
    for number in 1..200 {
        let at = number * 37 % 2000 * BLOCK;
        slow.check(at, BLOCK);
        asked += BLOCK as u64;
    }
    assert_eq!(slow.read(), asked);
}

#[test]
fn what_will_be_needed_is_read_once() {
    let len = 3 << 20;
    let slow = slow(len, true, None);
    assert!(slow.sectors.len() > 300, "{} pieces", slow.sectors.len());
    slow.file.will_need(BLOCK as u64 / 2..len as u64);
    let begun = slow.read();
    assert!(begun >= len as u64 / 2 - BLOCK as u64, "{begun} bytes are on their way");
    slow.check(BLOCK / 2, len);
    assert_eq!(slow.read(), begun);
    // From memory that other readers use again.
    slow.check(0, len);
}

#[test]
fn any_mixture_of_reads_is_that_of_the_file() {
    for in_pieces in [false, true] {
        let slow = slow((2 << 20) + 777, in_pieces, None);
        let mut seed = 7_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (seed >> 33) as usize % below
        };
        for _ in 0..60 {
            let mut at = random(slow.model.len());
            if random(3) == 0 {
                let from = random(slow.model.len()) as u64;
                slow.file.will_need(from..from + random(1 << 20) as u64);
            }
            for _ in 0..random(12) {
                let len = random(100_000);
                if random(2) == 0 {
                    slow.check(at, len);
                } else {
                    slow.check_lent(at, len);
                }
                at += len;
            }
        }
    }
}

#[test]
fn what_was_read_ahead_is_lent_where_it_lies() {
    let len = 3 << 20;
    let slow = slow(len, false, None);
    slow.file.will_need(0..len as u64);
    let mut memory = Vec::new();
    let lent = slow.file.lend(0..len as u64, &mut memory, |at, lent| {
        // The bytes stay as they are while others are read, and no lock is held.
        slow.check(len - BLOCK, BLOCK);
        slow.file.will_not_need(0..len as u64);
        let (from, to) = (at as usize, at as usize + lent.len());
        assert!(lent == &slow.model[from..to], "{} bytes at {at}", lent.len());
        slow.file.will_need(to as u64..len as u64);
        Ok::<_, Infallible>(())
    });
    let Ok(lent) = lent.unwrap();
    assert_eq!(lent, len as u64);
    assert!(memory.is_empty(), "nothing was copied");
    let behind = len as u64..len as u64 + 1;
    let Ok(lent) = slow.file.lend(behind, &mut memory, |_, _| Ok::<_, Infallible>(())).unwrap();
    assert_eq!(lent, 0);
}

#[test]
fn an_error_is_that_of_the_read_that_meets_it() {
    let broken = 1 << 20;
    let slow = slow(4 << 20, false, Some(broken));
    slow.file.will_need(0..4 << 20);
    for at in (0..4 << 20).step_by(128 << 10) {
        if (at..at + (128 << 10)).contains(&broken) {
            let error = slow.file.read(at as u64, &mut vec![0; 128 << 10]).unwrap_err();
            let Error::Device(error) = error else { panic!("{error}") };
            let bytes = error.sector.0 * 512..error.sector.0 * 512 + error.length;
            let sector = slow.sectors[0].start * 512 + broken as u64;
            assert!(bytes.contains(&sector), "{error:?}");
        } else {
            slow.check(at, 128 << 10);
        }
    }
}

#[test]
fn a_long_read_is_under_way_at_once() {
    let len = 16 << 20;
    let slow = slow(len, false, None);
    // Nothing was read of it: no piece is on its way, and none is asked for twice.
    slow.check(BLOCK, len);
    assert_eq!(slow.read(), len as u64 - BLOCK as u64);
    slow.check(0, len);
}

/// Files of some bytes each, one behind the other on the device.
fn neighbours(volume: &Arc<Volume>, count: usize) -> Vec<Vec<u8>> {
    let models: Vec<_> =
        (0..count).map(|number| vec![number as u8 | 1; 1 + number * 977 % (3 * BLOCK)]).collect();
    for (number, model) in models.iter().enumerate() {
        let file = make(volume, &format!("file {number}")).unwrap();
        file.write_direct(0, &Arc::new(model.clone()), 0..model.len(), NOW).unwrap();
    }
    models
}

#[test]
fn small_files_side_by_side_are_read_together() {
    const COUNT: usize = 100;
    for broken in [None, Some(COUNT / 2)] {
        let (device, volume) = open(256 << 20);
        let models = neighbours(&volume, COUNT);
        let sectors: Vec<_> = (0..COUNT)
            .map(|number| {
                let inode =
                    volume.inode(find(&volume, &format!("file {number}")).unwrap()).unwrap();
                let extent = extent_map(&volume, &inode.read()).unwrap()[0].extent;
                let first = volume.geometry().sector(extent.start).0;
                first..first + u64::from(extent.len) * 8
            })
            .collect();
        volume.close().unwrap();
        let reads = Arc::new(AtomicU64::new(0));
        let (count, data) = (Arc::clone(&reads), sectors.clone());
        let counted = Fault::new().on(Operation::Read).when(move |bio| {
            let is_data = data.iter().any(|range| range.contains(&bio.sector().0));
            count.fetch_add(u64::from(is_data), Ordering::Relaxed);
            false
        });
        let broken_sector = broken.map(|number| Sector(sectors[number].start));
        let fault = broken_sector
            .map(|first| Fault::new().on(Operation::Read).at(first..Sector(first.0 + 1)));
        let faulty = FaultyDevice::new(device, std::iter::once(counted).chain(fault));
        let slowness = Slowness { latency: LATENCY, bandwidth: None };
        let device: Arc<dyn BlockDevice> = Arc::new(Delay::new(slowness, Arc::new(faulty)));
        let volume = Arc::new(Volume::open(device).unwrap());
        let open = |number: usize| {
            OpenFile::open(&volume, find(&volume, &format!("file {number}")).unwrap()).unwrap()
        };
        let files: Vec<_> = (0..COUNT).map(open).collect();
        OpenFile::will_need_all(files.iter().map(|file| (file, 0..file.size())));
        let begun = reads.load(Ordering::Relaxed);
        assert!(begun <= COUNT as u64 / 10, "{begun} reads for {COUNT} files");
        for (number, (file, model)) in files.iter().zip(&models).enumerate() {
            let mut bytes = vec![0; model.len() + 1];
            match file.read(0, &mut bytes) {
                // Those that shared its read are read again.
                Err(Error::Device(error)) if broken == Some(number) => {
                    assert_eq!(Some(error.sector), broken_sector);
                }
                read => assert!(bytes[..read.unwrap()] == model[..], "file {number}"),
            }
        }
        if broken.is_none() {
            assert_eq!(reads.load(Ordering::Relaxed), begun, "nothing is read twice");
        }
    }
}
