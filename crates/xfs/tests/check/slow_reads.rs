//! A device that answers late has reads begun ahead of their use: on a volume with damage this
//! changes nothing of what a reader gets, or hears.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use undercroft_block::stack::{Delay, Slowness};
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, MemoryDevice, Operation, Sector, read_buffer, write_all_at};
use undercroft_judges::damage::volume;
use undercroft_judges::random::Random;
use undercroft_judges::{kernel, rounds};
use undercroft_testkit::xfs::mutation::{Subject, check_device};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode, Position};
use undercroft_xfs::recovery::recover;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, TreeAhead, Volume, WalkOrder};
use uuid::Uuid;

/// Bytes of a file that are read.
const BYTES: usize = 256 << 10;

fn subject() -> Subject {
    let (_directory, image) = volume().unwrap();
    let image = std::fs::read(image).unwrap();
    Subject::new(Arc::new(MemoryDevice::new(image.len() as u64)), &image, 0x510).unwrap()
}

fn slow(device: &Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let slowness = Slowness { latency: Duration::from_micros(300), bandwidth: None };
    Arc::new(Delay::new(slowness, Arc::clone(device)))
}

#[test]
fn a_check_finds_the_same() {
    if !kernel::available_or_report() {
        return;
    }
    let mut subject = subject();
    let mut compared = 0;
    for round in 0..rounds(60, 600) {
        let damage = |subject: &Subject| {
            (check_device(subject.device()), check_device(&slow(subject.device())))
        };
        let (Ok((fast, mut found)), late) = subject.round(4, damage).unwrap() else { continue };
        let (late, mut found_late) = late.unwrap();
        let damage = subject.damage();
        assert_eq!(fast.is_clean(), late.is_clean(), "round {round}: {damage:?}");
        found.sort();
        found_late.sort();
        // Of two owners of a block the one that comes second is named.
        if !found.iter().any(|finding| finding.contains("used twice")) {
            assert_eq!(found, found_late, "round {round}: {damage:?}");
            compared += usize::from(!found.is_empty());
        }
    }
    assert!(compared > rounds(20, 200), "{compared} were compared");
}

#[test]
fn a_walk_reads_the_same() {
    if !kernel::available_or_report() {
        return;
    }
    let mut subject = subject();
    let pristine = walk(subject.device());
    assert!(pristine.len() > 100 && !pristine.iter().any(|line| line.contains("error")));
    let mut errors = 0;
    for round in 0..rounds(60, 600) {
        let walks = |subject: &Subject| (walk(subject.device()), walk(&slow(subject.device())));
        let (fast, late) = subject.round(4, walks).unwrap();
        assert_eq!(fast, late, "round {round}: {:?}", subject.damage());
        errors += usize::from(fast.iter().any(|line| line.contains("error")));
    }
    assert!(errors > rounds(10, 100), "{errors} volumes had errors");
}

/// Sectors that cannot be read: errors of blocks that were read ahead, or together with others, are
/// those of their readers alone.
#[test]
fn broken_sectors_are_met_by_the_same_readers() {
    if !kernel::available_or_report() {
        return;
    }
    let subject = subject();
    let faulty = |faults: Vec<Fault>| -> Arc<dyn BlockDevice> {
        Arc::new(FaultyDevice::new(Arc::clone(subject.device()), faults))
    };
    // The sectors that a walk comes to.
    let read = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = Arc::clone(&read);
    let note = Fault::new().on(Operation::Read).when(move |bio| {
        noted.lock().unwrap().insert(bio.sector().0);
        false
    });
    let pristine = walk(&faulty(vec![note]));
    let read: Vec<u64> = read.lock().unwrap().iter().copied().collect();
    let (mut random, mut errors) = (Random::new(0x511), 0);
    for round in 0..rounds(40, 400) {
        let pick = |random: &mut Random| read[random.below(read.len() as u64) as usize];
        let broken: Vec<u64> = (0..1 + random.below(8)).map(|_| pick(&mut random)).collect();
        let fault = |sector: &u64| {
            Fault::new().on(Operation::Read).at(Sector(*sector)..Sector(sector + 1)).from_nth(0)
        };
        let device = faulty(broken.iter().map(fault).collect());
        let (fast, late) = (walk(&device), walk(&slow(&device)));
        assert_eq!(fast, late, "round {round}: {broken:?}");
        errors += usize::from(fast != pristine);
    }
    assert!(errors >= rounds(20, 200), "{errors} walks met one");
}

/// The journal of a volume that was left with thousands of new files: its blocks are read together,
/// and the result is that of a device that answers at once.
#[test]
fn a_replay_writes_the_same_in_few_rounds() {
    const SIZE: u64 = 256 << 20;
    const FILES: usize = 3000;
    let pristine: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(0x5107))).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    mkfs::finish(&mkfs::begin(&pristine, plan, &root).unwrap(), false).unwrap();
    let volume = Volume::open_live(Arc::clone(&pristine), &LiveOptions::default()).unwrap();
    let root = volume.geometry().root_inode;
    for number in 0..FILES {
        let new = NewInode::new(FileType::Regular, 0o644);
        ops::make(&volume, root, format!("file-{number}").as_bytes(), &new).unwrap();
    }
    volume.sync().unwrap();
    // As a crash leaves it.
    drop(volume);
    let replayed = |slowness: Option<Slowness>| {
        let bytes = read_buffer(&*pristine, Sector(0), SIZE as usize).unwrap();
        let copy: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
        write_all_at(&*copy, Sector(0), &bytes).unwrap();
        let before = copy.statistics();
        let device: Arc<dyn BlockDevice> = match slowness {
            Some(slowness) => Arc::new(Delay::new(slowness, Arc::clone(&copy))),
            None => Arc::clone(&copy),
        };
        let report = recover(&device, &mut |_| {}).unwrap().expect("it is dirty");
        let passed = copy.statistics() - before;
        assert!(report.blocks > FILES as u64 / 64, "{report:?}");
        // One by one, each block would be read and, but for neighbours, written.
        assert!(passed.requests < report.blocks, "{passed:?} for {report:?}");
        read_buffer(&*copy, Sector(0), SIZE as usize).unwrap()
    };
    let late = replayed(Some(Slowness { latency: Duration::from_millis(1), bandwidth: None }));
    assert!(*late == *replayed(None), "the volumes differ");
}

/// Everything that can be read of a volume, a line for each name.
fn walk(device: &Arc<dyn BlockDevice>) -> Vec<String> {
    let volume = match Volume::open(Arc::clone(device)) {
        Ok(volume) => Arc::new(volume),
        Err(error) => return vec![format!("error: {error}")],
    };
    let root = volume.geometry().root_inode;
    let mut ahead = TreeAhead::new(&volume, root, WalkOrder::Names);
    let (mut lines, mut waiting, mut known) = (Vec::new(), vec![root], HashSet::from([root]));
    while let Some(directory) = waiting.pop() {
        ahead.reach(directory);
        let entries = match entries(&volume, directory) {
            Ok(entries) => entries,
            Err(error) => {
                lines.push(format!("{directory}: error: {error}"));
                continue;
            }
        };
        volume.prefetch_inodes(entries.iter().map(|(_, number)| *number));
        let mut below = Vec::new();
        for (name, number) in entries {
            let name = String::from_utf8_lossy(&name).into_owned();
            match read(&volume, number) {
                Ok(None) if known.insert(number) => below.push(number),
                Ok(None) => lines.push(format!("{directory}/{name}: seen")),
                Ok(Some(what)) => lines.push(format!("{directory}/{name}: {what}")),
                Err(error) => lines.push(format!("{directory}/{name}: error: {error}")),
            }
        }
        waiting.extend(below.into_iter().rev());
    }
    lines
}

fn entries(volume: &Volume, directory: InodeNumber) -> Result<Vec<(Vec<u8>, InodeNumber)>, Error> {
    let mut entries = Vec::new();
    let inode = volume.inode(directory)?;
    ops::entries(volume, &inode.read(), Position::START, |entry| {
        entries.push((entry.name.to_vec(), entry.inode));
        entries.len() < 10_000
    })?;
    entries.sort();
    Ok(entries)
}

/// The content of an inode; `None` for a directory.
fn read(volume: &Arc<Volume>, number: InodeNumber) -> Result<Option<String>, Error> {
    let inode = volume.inode(number)?;
    let file_type = inode.read().file_type();
    match file_type {
        FileType::Directory => Ok(None),
        FileType::Regular => {
            let file = OpenFile::open_inode(volume, &inode)?;
            let (mut sum, mut at, mut piece) = (0_u64, 0, vec![0; 4096]);
            while at < BYTES {
                let len = file.read(at as u64, &mut piece)?;
                if len == 0 {
                    break;
                }
                let bytes = piece[..len].iter();
                sum = bytes.fold(sum, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte));
                at += len;
            }
            Ok(Some(format!("{at} bytes, {sum:x}")))
        }
        FileType::Symlink => Ok(Some(format!("{:?}", ops::read_link(volume, &inode.read())?))),
        other => Ok(Some(format!("{other:?}"))),
    }
}
