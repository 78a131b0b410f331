//! Crashes in the middle of such a change: the volume is the old one or the new one.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Recorder, Unflushed};
use undercroft_block::{
    BlockDevice, FileDevice, MemoryDevice, Sector, read_exact_at, write_all_at,
};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel, rounds};
use undercroft_testkit::xfs::journal::crash::{self, Cut};
use undercroft_testkit::xfs::journal::work;
use undercroft_testkit::xfs::judged;
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::FileType;
use undercroft_xfs::maintain;
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::recovery::recover;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

/// A volume with a file, on a device of `size` bytes.
fn volume(options: &MkfsOptions, size: u64) -> Arc<dyn BlockDevice> {
    let small = crash::make(options);
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
    let mut bytes = vec![0; options.size as usize];
    read_exact_at(small.as_ref(), Sector(0), &mut bytes).unwrap();
    write_all_at(device.as_ref(), Sector(0), &bytes).unwrap();
    let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default()).unwrap();
    let root = volume.geometry().root_inode;
    work::create(&volume, root, "file", FileType::Regular).unwrap();
    volume.close().unwrap();
    device
}

/// Does `change`, crashes it behind every event, and looks at the volume that the crash left, as
/// ours and, of every third one, as the kernel replays it: `seen` tells the state of the change on
/// it. `replayed` looks at an image as the kernel leaves it.
fn cut_everywhere<T: PartialEq + std::fmt::Debug>(
    device: Arc<dyn BlockDevice>,
    change: impl Fn(&Arc<dyn BlockDevice>),
    seen: impl Fn(&Volume) -> T,
    replayed: impl Fn(&Path, &T),
) {
    let before = seen(&Volume::open(Arc::clone(&device)).unwrap());
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let recorded: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
    change(&recorded);
    let after = seen(&Volume::open(recorded).unwrap());
    assert_ne!(before, after);
    let mut recording = recorder.recording().unwrap();
    let (mut changed, mut events, mut held_back) = (0, 0, 0);
    while recording.step().is_some() {
        if !recording.has_changed() {
            continue;
        }
        events += 1;
        for unflushed in [
            Unflushed::Dropped,
            Unflushed::Kept,
            Unflushed::Torn { seed: recording.position() as u64 },
        ] {
            let what = format!("event {}, {unflushed:?}", recording.position());
            let cut = Cut { disk: recording.disk(unflushed), durable: 0, what };
            let volume = Volume::open(Arc::clone(&cut.disk));
            let volume = volume.unwrap_or_else(|error| panic!("{}: {error}", cut.what));
            let found = seen(&volume);
            assert!(found == before || found == after, "{}: {found:?}", cut.what);
            changed += u32::from(found == after);
            drop(volume);
            held_back += u32::from(unflushed != Unflushed::Dropped);
            if unflushed != Unflushed::Dropped && held_back % rounds(3, 1) == 0 {
                judge(&cut, &change, &seen, &replayed, (&found, &after));
            }
        }
    }
    assert!(changed > 0 && changed < 3 * events, "{changed} of {events} events");
}

/// Has the kernel replay a copy, which must show the same, and repeats the change on the volume.
fn judge<T: PartialEq + std::fmt::Debug>(
    cut: &Cut,
    change: &impl Fn(&Arc<dyn BlockDevice>),
    seen: &impl Fn(&Volume) -> T,
    replayed: &impl Fn(&Path, &T),
    (found, after): (&T, &T),
) {
    let directory = tempfile::tempdir().unwrap();
    let (ours, its) = (directory.path().join("ours"), directory.path().join("its"));
    cut.save(&ours);
    image::copy(&ours, &its).unwrap();
    let mount = LoopMount::new(&its, Access::ReadWrite, &["nouuid"]).unwrap();
    assert!(mount.join("file").exists(), "{}", cut.what);
    mount.unmount().unwrap();
    assert_eq!(seen(&Volume::open(open(&its)).unwrap()), *found, "{}", cut.what);
    // Its replay leaves the copies of the superblock as they are, which `xfs_repair` would report,
    // until we open it for change.
    let options = CheckOptions::default();
    check(open(&its), &options, &mut |finding| {
        let finding = finding.to_string();
        assert!(finding.contains("secondary superblock"), "{}: {finding}", cut.what);
    })
    .unwrap();
    replayed(&its, found);
    Volume::open_live(open(&its), &LiveOptions::default()).unwrap().close().unwrap();
    judged::sound(&its, &cut.what);
    // Of a journal that is clean, too, and once more.
    for _ in 0..2 {
        recover(&open(&ours), &mut |_| {}).unwrap();
        judged::sound(&ours, &cut.what);
    }
    assert_eq!(seen(&Volume::open(open(&ours)).unwrap()), *found, "{}", cut.what);
    change(&open(&ours));
    assert_eq!(seen(&Volume::open(open(&ours)).unwrap()), *after, "{}", cut.what);
    judged::sound(&ours, &cut.what);
}

fn open(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, false).unwrap())
}

fn options() -> MkfsOptions {
    MkfsOptions { ag_count: Some(2), ..crash::options(32 << 20, 7) }
}

fn size(volume: &Volume) -> (u64, u32) {
    (volume.superblock().blocks, volume.superblock().ag_count)
}

#[test]
fn a_crash_while_growing() {
    if !kernel::available_or_report() {
        return;
    }
    // The last group becomes longer, and another one follows.
    let group = Some(24 << 20);
    let options = MkfsOptions { ag_count: None, ag_size: group, ..crash::options(64 << 20, 7) };
    cut_everywhere(
        volume(&options, 100 << 20),
        |device| _ = maintain::grow(device, None).unwrap(),
        size,
        |image, found| {
            // It takes the size from the copies: files in new groups would be lost.
            let xfsprogs = Xfsprogs::newest().unwrap();
            let copy = image.with_extension("repaired");
            image::copy(image, &copy).unwrap();
            let mut repair = Command::new(xfsprogs.tool("xfs_repair").unwrap());
            let told = repair.arg(&copy).output().unwrap();
            let repaired = size(&Volume::open(open(&copy)).unwrap());
            assert!(repaired >= *found, "{repaired:?}: {told:?}");
        },
    );
}

#[test]
fn a_crash_while_the_label_changes() {
    if !kernel::available_or_report() {
        return;
    }
    let change = |device: &Arc<dyn BlockDevice>| {
        let volume = Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap();
        maintain::set_label(&volume, b"another").unwrap();
        volume.close().unwrap();
    };
    let device = volume(&options(), 32 << 20);
    cut_everywhere(device, change, |volume| maintain::label(volume).unwrap(), |_, _| ());
}

#[test]
fn a_crash_while_the_uuid_changes() {
    if !kernel::available_or_report() {
        return;
    }
    let device = volume(&options(), 32 << 20);
    for uuid in [Uuid::from_u128(99), Uuid::from_u128(7)] {
        let change = |device: &Arc<dyn BlockDevice>| maintain::set_uuid(device, uuid).unwrap();
        cut_everywhere(Arc::clone(&device), change, |volume| volume.superblock().uuid, |_, _| ());
        assert_eq!(Volume::open(Arc::clone(&device)).unwrap().geometry().uuid, uuid);
    }
}
