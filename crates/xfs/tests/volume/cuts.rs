//! Crashes in the middle of such a change: the volume is the old one or the new one.

use crate::crash::{self, Cut};
use crate::judged;
use crate::work;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Recorder, Unflushed};
use undercroft_block::{
    BlockDevice, FileDevice, MemoryDevice, Sector, read_exact_at, write_all_at,
};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, image, kernel, rounds};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::FileType;
use undercroft_xfs::maintain;
use undercroft_xfs::mkfs::MkfsOptions;
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
/// it.
fn cut_everywhere<T: PartialEq + std::fmt::Debug>(
    device: Arc<dyn BlockDevice>,
    change: impl Fn(&Arc<dyn BlockDevice>),
    seen: impl Fn(&Volume) -> T,
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
                judge(&cut, &change, &seen, (&found, &after));
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
    (found, after): (&T, &T),
) {
    let directory = tempfile::tempdir().unwrap();
    let (ours, its) = (directory.path().join("ours"), directory.path().join("its"));
    cut.save(&ours);
    image::copy(&ours, &its).unwrap();
    let open = |image: &Path| -> Arc<dyn BlockDevice> {
        Arc::new(FileDevice::open(image, false).unwrap())
    };
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
    for image in [&its, &ours] {
        Volume::open_live(open(image), &LiveOptions::default()).unwrap().close().unwrap();
        judged::sound(image, &cut.what);
    }
    assert_eq!(seen(&Volume::open(open(&ours)).unwrap()), *found, "{}", cut.what);
    change(&open(&ours));
    assert_eq!(seen(&Volume::open(open(&ours)).unwrap()), *after, "{}", cut.what);
    judged::sound(&ours, &cut.what);
}

fn options() -> MkfsOptions {
    MkfsOptions { ag_count: Some(2), ..crash::options(32 << 20, 7) }
}

#[test]
fn a_crash_while_growing() {
    if !kernel::available_or_report("xfs::volume::cuts::a_crash_while_growing") {
        return;
    }
    // The last group becomes longer, and another one follows.
    let group = Some(24 << 20);
    let options = MkfsOptions { ag_count: None, ag_size: group, ..crash::options(40 << 20, 7) };
    cut_everywhere(
        volume(&options, 80 << 20),
        // A volume that grew already is refused.
        |device| drop(maintain::grow(device, None)),
        |volume| (volume.superblock().blocks, volume.superblock().ag_count),
    );
}

#[test]
fn a_crash_while_the_label_changes() {
    if !kernel::available_or_report("xfs::volume::cuts::a_crash_while_the_label_changes") {
        return;
    }
    let change = |device: &Arc<dyn BlockDevice>| {
        let volume = Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap();
        maintain::set_label(&volume, b"another").unwrap();
        volume.close().unwrap();
    };
    let device = volume(&options(), 32 << 20);
    cut_everywhere(device, change, |volume| maintain::label(volume).unwrap());
}

#[test]
fn a_crash_while_the_uuid_changes() {
    if !kernel::available_or_report("xfs::volume::cuts::a_crash_while_the_uuid_changes") {
        return;
    }
    let device = volume(&options(), 32 << 20);
    for uuid in [Uuid::from_u128(99), Uuid::from_u128(7)] {
        let change = |device: &Arc<dyn BlockDevice>| maintain::set_uuid(device, uuid).unwrap();
        cut_everywhere(Arc::clone(&device), change, |volume| volume.superblock().uuid);
        assert_eq!(Volume::open(Arc::clone(&device)).unwrap().geometry().uuid, uuid);
    }
}
