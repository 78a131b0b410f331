//! Lookups that tasks wait for.

use super::stand::{NOW, check_clean, close, device, find, live, make, open, root, unlink};
use futures_executor::block_on;
use futures_util::future::join_all;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use undercroft_block::stack::{Delay, Slowness};
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation, Sector};
use undercroft_judges::random::Random;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, Volume};

const LATENCY: Duration = Duration::from_millis(5);

/// Files of the volume that lookups are tried on: several to a cluster of inodes.
const FILES: u64 = 1000;

/// Sectors that were read, in order, each with what its device was asked for.
type Seen = Arc<Mutex<Vec<Sector>>>;

fn late(device: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    Arc::new(Delay::new(Slowness { latency: LATENCY, bandwidth: None }, device))
}

/// A volume with [`FILES`] files, and their numbers.
fn volume() -> (Arc<dyn BlockDevice>, Vec<InodeNumber>) {
    let (device, volume) = open(64 << 20);
    let numbers = (0..FILES).map(|file| make(&volume, &name(file)).unwrap().number()).collect();
    close(&device, &volume);
    (device, numbers)
}

fn name(file: u64) -> String {
    format!("a-name-of-some-length-{file:05}")
}

/// The same open for reading on a late device; reads of it that were submitted; further faults.
fn watched(device: &Arc<dyn BlockDevice>, faults: Vec<Fault>) -> (Arc<Volume>, Seen) {
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let watch = Fault::new().on(Operation::Read).when(move |bio| {
        noted.lock().unwrap().push(bio.sector());
        false
    });
    let below = late(Arc::new(FaultyDevice::new(Arc::clone(device), faults)));
    let device: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(below, [watch]));
    let volume = Arc::new(Volume::open(device).unwrap());
    seen.lock().unwrap().clear();
    (volume, seen)
}

/// The number behind a name, and the size of what it is.
fn look(volume: &Arc<Volume>, name: &str) -> Result<Option<(InodeNumber, u64)>, Error> {
    let directory = volume.inode(root(volume))?;
    let Some(number) = ops::lookup(volume, &directory.read(), name.as_bytes())? else {
        return Ok(None);
    };
    let inode = volume.inode(number)?;
    let size = inode.read().core.size;
    Ok(Some((number, size)))
}

#[test]
fn one_thread_has_as_many_inodes_on_their_way_as_it_asks_for() {
    let (device, numbers) = volume();
    let (volume, seen) = watched(&device, Vec::new());
    let stat = |number: &InodeNumber| {
        let number = *number;
        Box::pin(volume.awaited(move |volume| Ok(volume.inode(number)?.read().number)))
    };
    let mut all: Vec<Pin<Box<_>>> = numbers.iter().map(stat).collect();
    let mut context = Context::from_waker(Waker::noop());
    let found: Vec<_> = all.iter_mut().map(|stat| stat.as_mut().poll(&mut context)).collect();
    let begun = seen.lock().unwrap().len();
    // The device is far.
    let regions = FILES as usize * 512 / 65536;
    // The first ones may be ready: opening read their region.
    let pending = found.iter().filter(|found| found.is_pending()).count();
    assert!(pending >= FILES as usize - 128, "{pending}");
    assert!((regions - 1..=regions + 2).contains(&begun), "{begun} for {regions} regions");
    let rest = all.into_iter().zip(found).filter(|(_, found)| found.is_pending());
    let rest: Vec<_> = rest.map(|(stat, _)| stat).collect();
    let found: Vec<Result<_, Error>> = block_on(join_all(rest));
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found, numbers[numbers.len() - found.len()..]);
    assert_eq!(seen.lock().unwrap().len(), begun, "each region was read once");
}

#[test]
fn lookups_find_what_threads_find_and_read_nothing_twice() {
    let (device, numbers) = volume();
    let (volume, seen) = watched(&device, Vec::new());
    let names: Vec<_> = (0..FILES + 9).map(name).collect();
    let lookups = names.iter().map(|name| volume.awaited(move |volume| look(volume, name)));
    let found = block_on(join_all(lookups));
    for (file, found) in found.into_iter().enumerate() {
        let expected = numbers.get(file).map(|number| (*number, 0));
        assert_eq!(found.unwrap(), expected, "{}", names[file]);
    }
    let seen = seen.lock().unwrap();
    let places: HashSet<_> = seen.iter().collect();
    assert_eq!(places.len(), seen.len(), "{seen:?}");
}

/// Blocks that were begun ahead are the task's when it asks for them.
#[test]
fn what_is_on_its_way_is_not_read_again() {
    let (device, numbers) = volume();
    let (volume, seen) = watched(&device, Vec::new());
    volume.prefetch_inodes(numbers.iter().copied());
    let begun = seen.lock().unwrap().len();
    let stats = numbers.iter().map(|number| {
        volume.awaited(move |volume| volume.inode(*number).map(|inode| inode.read().number))
    });
    let found = block_on(join_all(stats));
    assert!(found.into_iter().map(Result::unwrap).eq(numbers));
    assert_eq!(seen.lock().unwrap().len(), begun);
}

#[test]
fn errors_come_to_the_task_that_asked_and_stay_away_from_the_others() {
    let (device, numbers) = volume();
    let place = |number: InodeNumber| Sector(number.0 & !31);
    let last = *numbers.last().unwrap();
    // Inodes of 512 bytes in blocks of 4 KiB, in a group that is the first.
    let broken = place(last)..Sector(place(last).0 + 1);
    let failing = Fault::new().on(Operation::Read).at(broken).from_nth(0);
    let (volume, _) = watched(&device, vec![failing]);
    for prefetched in [false, true] {
        if prefetched {
            volume.prefetch_inodes([last]);
        }
        let stats = numbers.iter().map(|number| {
            volume.awaited(move |volume| volume.inode(*number).map(|inode| inode.read().number))
        });
        for (number, found) in numbers.iter().zip(block_on(join_all(stats))) {
            if place(*number) == place(last) {
                assert!(matches!(found, Err(Error::Device(_))), "{number}: {found:?}");
            } else {
                assert_eq!(found.unwrap(), *number);
            }
        }
    }
    // Damage: the same error as that of a thread.
    undercroft_block::write_all_at(&*device, place(last), &[7; 512]).unwrap();
    let (volume, _) = watched(&device, Vec::new());
    let met = block_on(volume.awaited(|volume| volume.inode(last).map(drop))).unwrap_err();
    assert!(matches!(met, Error::Block { .. }), "{met}");
    assert_eq!(met.to_string(), volume.inode(last).map(drop).unwrap_err().to_string());
}

/// An operation that is given up leaves nothing behind; one that changes the volume waits.
#[test]
fn tasks_end_early_and_changes_are_whole() {
    let (device, numbers) = volume();
    let late = late(Arc::clone(&device));
    let volume = live(&late);
    let mut context = Context::from_waker(Waker::noop());
    for number in &numbers {
        let mut given_up = volume.awaited(move |volume| volume.inode(*number).map(drop));
        let _ = Pin::new(&mut given_up).poll(&mut context);
    }
    let removed = block_on(volume.awaited(|volume| unlink(volume, &name(FILES / 2)))).unwrap();
    assert_eq!(removed, numbers[FILES as usize / 2]);
    assert_eq!(find(&volume, &name(FILES / 2)), None);
    volume.close().unwrap();
    check_clean(&device);
}

/// On a device that answers late and not in order, with little memory, while others change the
/// directory.
#[test]
fn lookups_beside_writers_see_the_past_or_the_present() {
    let device = device(64 << 20);
    let count = AtomicU64::new(0);
    let slow = Fault::new()
        .on(Operation::Read)
        .when(move |_| count.fetch_add(1, Ordering::Relaxed).is_multiple_of(3))
        .late(Duration::from_millis(1));
    let slowness = Slowness { latency: Duration::from_micros(200), bandwidth: None };
    let faulty: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(Arc::clone(&device), [slow]));
    let volume = live(&(Arc::new(Delay::new(slowness, faulty)) as Arc<dyn BlockDevice>));
    volume.cache().set_limit(64 << 10);
    // Those with even numbers stay, the others come and go.
    let kept: Vec<_> = (0..200).map(|at| make(&volume, &name(2 * at)).unwrap().number()).collect();
    for at in 0..8 {
        let directory = NewInode::new(FileType::Directory, 0o755);
        ops::make(&volume, root(&volume), format!("d{at}").as_bytes(), &directory).unwrap();
    }
    let done = AtomicBool::new(false);
    let mut looked = 0;
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut random = Random::new(3);
            for _ in 0..1500 {
                let name = name(2 * random.below(200) + 1);
                match make(&volume, &name) {
                    Ok(file) => file.write(0, name.as_bytes(), NOW).unwrap(),
                    Err(Error::Exists(_)) => drop(unlink(&volume, &name).unwrap()),
                    Err(error) => panic!("{error}"),
                }
                if random.below(20) == 0 {
                    volume.sync().unwrap();
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut random = Random::new(4);
        while !done.load(Ordering::Acquire) && !writer.is_finished() {
            let files: Vec<_> = (0..64).map(|_| random.below(400)).collect();
            let lookups = files.iter().map(|file| {
                let name = name(*file);
                volume.awaited(move |volume| look(volume, &name))
            });
            for (file, found) in files.iter().zip(block_on(join_all(lookups))) {
                match found {
                    Ok(Some((number, size))) if file % 2 == 0 => {
                        assert_eq!((number, size), (kept[*file as usize / 2], 0));
                    }
                    Ok(Some((_, size))) => assert!(size == 0 || size == name(*file).len() as u64),
                    // It was removed between the look at the directory and that at the inode.
                    Ok(None) | Err(Error::Stale { .. }) => assert!(file % 2 == 1, "{file}"),
                    Err(error) => panic!("{error}"),
                }
                looked += 1;
            }
        }
        writer.join().unwrap();
    });
    assert!(looked >= 64, "{looked}");
    volume.close().unwrap();
    check_clean(&device);
}
