//! Data read ahead of readers while others change it.

use super::stand::{BLOCK, NOW, check_clean, device, live, make, read_all, read_lent, unlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use undercroft_block::stack::{Delay, Slowness};
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation};
use undercroft_judges::random::Random;
use undercroft_xfs::ops::{CloneRange, Size};
use undercroft_xfs::{OpenFile, Volume};

/// Bytes that are changed at once.
const CELL: usize = 16 * BLOCK;
const CELLS: usize = 96;

/// Content of a file that has no place in the other one.
const STRANGE: u8 = 0xee;

const CHANGES: u64 = 1200;

/// The history of a cell: its content is the number of a change, in every word, or zeros.
#[derive(Default)]
struct Cell {
    /// The last change that has ended, and the last one that has begun.
    ended: AtomicU64,
    begun: AtomicU64,
}

struct History {
    cells: Vec<Cell>,
    /// By number, whether the change leaves zeros. The first one is that of a new file.
    zeros: Vec<AtomicBool>,
}

impl History {
    fn new() -> Self {
        let zeros: Vec<_> = (0..=CHANGES).map(|_| AtomicBool::new(false)).collect();
        zeros[0].store(true, Ordering::Relaxed);
        Self { cells: (0..CELLS).map(|_| Cell::default()).collect(), zeros }
    }

    fn change(
        &self,
        cells: std::ops::Range<usize>,
        number: u64,
        zeros: bool,
        change: impl FnOnce(),
    ) {
        self.zeros[number as usize].store(zeros, Ordering::SeqCst);
        self.cells[cells.clone()]
            .iter()
            .for_each(|cell| cell.begun.store(number, Ordering::SeqCst));
        change();
        self.cells[cells].iter().for_each(|cell| cell.ended.store(number, Ordering::SeqCst));
    }

    /// One read of a cell, whose last content that this reader saw is `seen`.
    fn read(&self, reader: &Reader, index: usize, seen: &mut u64, bytes: &mut [u8]) {
        let cell = &self.cells[index];
        let least = cell.ended.load(Ordering::SeqCst).max(*seen);
        let offset = (index * CELL) as u64;
        let len = match reader.is_lent_to {
            true => read_lent(&reader.file, offset, bytes),
            false => reader.file.read(offset, bytes),
        };
        let len = len.unwrap();
        let most = cell.begun.load(Ordering::SeqCst);
        let (mut oldest, mut whole) = (u64::MAX, true);
        for word in bytes[..len].chunks_exact(512).map(|part| &part[..8]) {
            let number = u64::from_le_bytes(word.try_into().unwrap());
            oldest = oldest.min(number);
            whole &= number != 0;
            if number == 0 {
                let mut between = least..=most;
                let is_zero = |number: u64| self.zeros[number as usize].load(Ordering::SeqCst);
                assert!(between.any(is_zero), "zeros in cell {index} from {least} to {most}");
            } else {
                assert!(number <= CHANGES, "cell {index} has {number:#x}");
                assert!(
                    (least..=most).contains(&number),
                    "cell {index} is {number} between {least} and {most}"
                );
            }
        }
        // A change under way may have come to a part of the words.
        if len > 0 && whole {
            *seen = oldest;
        }
    }
}

/// One opening of the file.
struct Reader {
    file: OpenFile,
    /// It takes the data where it lies.
    is_lent_to: bool,
}

/// Changes of one file by all ways that there are.
fn change_all(volume: &Arc<Volume>, file: &OpenFile, history: &History) {
    let mut random = Random::new(5);
    let other = make(volume, "other").unwrap();
    for number in 1..=CHANGES {
        let index = random.below(CELLS as u64) as usize;
        let at = (index * CELL) as u64;
        let words = Arc::new(number.to_le_bytes().repeat(CELL / 8));
        match random.below(12) {
            0..4 => history.change(index..index + 1, number, false, || {
                file.write(at, &words, NOW).unwrap();
            }),
            4..7 => history.change(index..index + 1, number, false, || {
                file.write_direct(at, &words, 0..CELL, NOW).unwrap();
            }),
            7 => history.change(index..index + 1, number, true, || {
                file.punch(at..at + CELL as u64, NOW).unwrap();
            }),
            8 => history.change(index..index + 1, number, true, || {
                file.zero(at..at + CELL as u64, Size::Keep, NOW).unwrap();
            }),
            9 => {
                other.write(0, &words, NOW).unwrap();
                history.change(index..index + 1, number, false, || {
                    let range = CloneRange { source: 0, target: at, len: CELL as u64 };
                    file.clone_range(&other, &range, NOW).unwrap();
                });
            }
            10 if index > CELLS / 2 => history.change(index..CELLS, number, true, || {
                file.truncate(at, NOW).unwrap();
                file.truncate((CELLS * CELL) as u64, NOW).unwrap();
            }),
            _ => file.fdatasync_and_wait().unwrap(),
        }
        // The reader gets some way.
        thread::sleep(Duration::from_micros(random.below(1500)));
    }
}

/// Files that take the blocks that the other one leaves.
fn strangers(volume: &Arc<Volume>, done: &AtomicBool) {
    let memory = Arc::new(vec![STRANGE; 4 * CELL]);
    while !done.load(Ordering::Acquire) {
        let file = make(volume, "stranger").unwrap();
        file.write_direct(0, &memory, 0..memory.len(), NOW).unwrap();
        drop(file);
        unlink(volume, "stranger").unwrap();
        volume.sync().unwrap();
    }
}

/// On a device that answers late, and not in order.
fn slow(device: &Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let count = AtomicU64::new(0);
    let late = Fault::new()
        .on(Operation::Read)
        .when(move |_| count.fetch_add(1, Ordering::Relaxed).is_multiple_of(5))
        .late(Duration::from_millis(2));
    let slowness = Slowness { latency: Duration::from_micros(300), bandwidth: None };
    let faulty: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(Arc::clone(device), [late]));
    Arc::new(Delay::new(slowness, faulty))
}

#[test]
fn readers_see_what_was_written_and_never_go_back() {
    let device = device(256 << 20);
    let volume = live(&slow(&device));
    let file = make(&volume, "file").unwrap();
    file.truncate((CELLS * CELL) as u64, NOW).unwrap();
    let (history, done) = (History::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            change_all(&volume, &file, &history);
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| strangers(&volume, &done));
        for (step, is_lent_to) in [(1, false), (1, true), (5, false)] {
            let (history, done) = (&history, &done);
            let reader =
                Reader { file: OpenFile::open(&volume, file.number()).unwrap(), is_lent_to };
            scope.spawn(move || {
                let (mut seen, mut bytes) = (vec![0; CELLS], vec![0; CELL]);
                let mut index = 0;
                while !done.load(Ordering::Acquire) {
                    history.read(&reader, index, &mut seen[index], &mut bytes);
                    index = (index + step) % CELLS;
                }
            });
        }
    });
    let ahead = volume.read_ahead_bytes();
    assert!(ahead.used > 1 << 20, "{ahead:?}");
    assert_eq!(read_all(&file).len(), CELLS * CELL);
    drop(file);
    volume.close().unwrap();
    check_clean(&device);
}
