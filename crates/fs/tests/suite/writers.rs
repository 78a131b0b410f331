//! One writer: what would be a second one on the same device is refused, whichever way it comes.

use crate::volumes::{SIZE, close_and_check, create, format, image, memory, open, options};
use std::sync::Arc;
use std::thread;
use undercroft_block::stack::{Delay, Linear, Mirror, Overlay, Slowness};
use undercroft_block::{BlockDevice, MemoryDevice, SECTOR_SIZE, Sector, Window};
use undercroft_fs::{ErrorKind, FileSystem, FileType, OpenOptions};
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume, recovery};
use uuid::Uuid;

type Device = Arc<dyn BlockDevice>;

/// A way to change what is on a device.
type Way = (&'static str, Box<dyn FnOnce() -> Result<(), Error> + Send>);

fn way(name: &'static str, change: impl FnOnce() -> Result<(), Error> + Send + 'static) -> Way {
    (name, Box::new(change))
}

fn opened(device: Device) -> Result<(), Error> {
    FileSystem::open(device, &options()).map(drop)
}

fn made(device: &Device) -> Result<(), Error> {
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(3))).unwrap();
    mkfs::begin(device, plan, &NewInode::new(FileType::Directory, 0o755)).map(drop)
}

/// Everything that changes a volume on `device`, or on one over it.
fn ways(device: &Device) -> Vec<Way> {
    let of = |change: fn(&Device) -> Result<(), Error>| {
        let device = Arc::clone(device);
        move || change(&device)
    };
    let shrink = |device: &Device| {
        let target = ShrinkTarget::Smallest;
        let options = ShrinkOptions { target, keep_inode_numbers: false };
        maintain::shrink(device, options, &mut |_, _| {}).map(drop)
    };
    let slowness = Slowness { latency: std::time::Duration::ZERO, bandwidth: None };
    let other: Device = Arc::new(MemoryDevice::new(SIZE));
    let mirror: Device = Arc::new(Mirror::new(vec![other, Arc::clone(device)]).unwrap());
    let all = Window::new(Arc::clone(device), Sector(0), device.capacity()).unwrap();
    let delayed: Device = Arc::new(Delay::new(slowness, Arc::new(all)));
    let linear: Device = Arc::new(Linear::new(vec![Arc::clone(device)]).unwrap());
    vec![
        way("open", of(|device| opened(Arc::clone(device)))),
        way("open past the journal", of(|device| Volume::open_bulk(Arc::clone(device)).map(drop))),
        way(
            "open without replay",
            of(|device| {
                FileSystem::open(Arc::clone(device), &options().without_replay()).map(drop)
            }),
        ),
        way(
            "open live",
            of(|device| Volume::open_live(Arc::clone(device), &LiveOptions::default()).map(drop)),
        ),
        way("mkfs", of(made)),
        way("replay", of(|device| recovery::recover(device, &mut |_| {}).map(drop))),
        way("grow", of(|device| maintain::grow(device, None).map(drop))),
        way("UUID", of(|device| maintain::set_uuid(device, Uuid::from_u128(4)))),
        way("shrink", of(shrink)),
        way("minimise", of(|device| maintain::minimise(device, false, &mut |_, _| {}).map(drop))),
        way("abandon", of(|device| maintain::abandon_shrink(device).map(drop))),
        way("open through a mirror", move || opened(mirror)),
        way("open through a delay", move || opened(delayed)),
        way("mkfs through a concatenation", move || made(&linear)),
    ]
}

/// Goes all ways at once, as each waits for the holder's end for a while.
fn all_refused(device: &Device) {
    let threads = ways(device).into_iter().map(|(name, change)| (name, thread::spawn(change)));
    for (name, thread) in threads.collect::<Vec<_>>() {
        match thread.join().unwrap() {
            Ok(()) => panic!("{name} is a second writer"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InUse, "{name}: {error}");
                let text = error.to_string();
                assert!(text.contains("is open for change in this program"), "{name}: {text}");
            }
        }
    }
}

/// Two of them lost half of the files that each had made durable.
#[test]
fn nothing_changes_a_volume_beside_its_writer() {
    let home = tempfile::tempdir().unwrap();
    for device in [memory(), image(&home.path().join("image"))] {
        let fs = open(&device);
        for number in 0..20 {
            fs.write(format!("/{number}"), "kept").unwrap();
        }
        fs.sync_and_wait().unwrap();
        all_refused(&device);
        // Readers are no writers, nor is who changes a copy.
        let reader = FileSystem::open(Arc::clone(&device), &OpenOptions::read_only()).unwrap();
        assert_eq!(reader.read("/7").unwrap(), b"kept");
        let copy: Device = Arc::new(Overlay::new(Arc::clone(&device)));
        open(&copy).write("/copy", "gone").unwrap();
        fs.write("/later", "kept").unwrap();
        close_and_check(fs, &device);
        assert_eq!(open(&device).read_dir("/").unwrap().count(), 21);
    }
}

#[test]
fn a_volume_lives_as_long_as_one_of_its_files() {
    let device = memory();
    let fs = open(&device);
    let file = create(&fs, fs.root(), "file");
    drop(fs);
    let error = opened(Arc::clone(&device)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    file.write_at(0, b"data").unwrap();
    file.fsync().wait().unwrap();
    drop(file);
    let fs = open(&device);
    assert_eq!(fs.read("/file").unwrap(), b"data");

    // One that was closed changes nothing any more, whatever lives on.
    let kept = create(&fs, fs.root(), "kept");
    fs.close().unwrap();
    let again = open(&device);
    assert!(kept.write_at(0, b"data").is_err());
    again.write("/more", "data").unwrap();
    close_and_check(again, &device);
}

/// A volume that is being made, too, until it is finished.
#[test]
fn a_volume_in_the_making_has_its_device() {
    let device: Device = Arc::new(MemoryDevice::new(SIZE));
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(3))).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    let making = mkfs::begin(&device, plan, &root).unwrap();
    let error = made(&device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    mkfs::finish(&making, true).unwrap();
    open(&device).write("/file", "data").unwrap();
    assert!(making.begin().is_err());
}

/// Two partitions of a disk are two volumes; what has a sector of both is not a third.
#[test]
fn volumes_side_by_side_do_not_meet() {
    let disk: Device = Arc::new(MemoryDevice::new(3 * SIZE));
    let sectors = SIZE / SECTOR_SIZE;
    let part = |start: u64| -> Device {
        Arc::new(Window::new(Arc::clone(&disk), Sector(start), Sector(sectors)).unwrap())
    };
    let (first, second) = (part(0), part(sectors));
    format(&first);
    format(&second);
    let (one, other) = (open(&first), open(&second));
    one.write("/one", "1").unwrap();
    other.write("/other", "2").unwrap();
    let across = part(sectors / 2);
    let across = thread::spawn(move || made(&across));
    let disk = Arc::clone(&disk);
    let whole = thread::spawn(move || made(&disk));
    for refused in [across, whole] {
        assert_eq!(refused.join().unwrap().unwrap_err().kind(), ErrorKind::InUse);
    }
    drop(one);
    open(&part(0)).write("/again", "1").unwrap();
    close_and_check(other, &second);
}
