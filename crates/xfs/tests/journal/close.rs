//! Volumes that are closed, or made clean and changed further.

use std::sync::Arc;
use std::time::Duration;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, FileDevice, Operation};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_testkit::xfs::journal::work::{create, make, open};
use undercroft_xfs::Volume;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::recovery::LogState;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

/// Longer than what comes between a write to a place and the end of the volume.
const LATE: Duration = Duration::from_millis(300);

#[test]
fn what_changed_on_its_way_to_its_place_goes_again() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, &MkfsOptions::new(64 << 20, Uuid::from_u128(1)));
    // The last record of a checkpoint is written with forced unit access, and not late.
    let places = Fault::new().on(Operation::Write).when(|bio| !bio.is_force_unit_access());
    let file: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let device = Arc::new(FaultyDevice::new(file, [places.late(LATE)]));
    let volume = Volume::open_live(Arc::clone(&device) as _, &LiveOptions::default()).unwrap();
    let root = volume.geometry().root_inode;
    let mut made = 0;
    // Until the journal is so full that its thread writes buffers to their places.
    while device.injected() == 0 {
        for _ in 0..4 {
            create(&volume, root, &format!("file-{made}"), FileType::Regular).unwrap();
            made += 1;
        }
        volume.force().unwrap().wait().unwrap();
        assert!(made < 100_000);
    }
    // The same buffers change once more.
    create(&volume, root, "last", FileType::Regular).unwrap();
    volume.close().unwrap();
    drop((volume, device));
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
}

/// A copy at any of these times is what a crash leaves then.
#[test]
fn a_volume_is_clean_in_between() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, &MkfsOptions::new(64 << 20, Uuid::from_u128(1)));
    let copy = directory.path().join("copy");
    let newest = Xfsprogs::newest().unwrap();
    let state = || {
        std::fs::copy(&image, &copy).unwrap();
        let device = Arc::new(FileDevice::open(&copy, true).unwrap());
        Volume::open(device).unwrap().log_state().unwrap()
    };
    let volume = open(&image);
    let root = volume.geometry().root_inode;
    let mut made = 0;
    let mut make_files = |count| {
        for _ in 0..count {
            create(&volume, root, &format!("file-{made}"), FileType::Regular).unwrap();
            made += 1;
        }
        volume.sync().unwrap();
    };
    for round in 0..12 {
        make_files(1 + round * 100);
        assert_eq!(state(), LogState::Dirty, "{round}");
        if round == 5 && kernel::available_or_report() {
            // The kernel replays what stands behind the record of an unmount.
            LoopMount::new(&copy, Access::ReadWrite, &[]).unwrap().unmount().unwrap();
            newest.repair_check(&copy).unwrap();
        }
        volume.settle().unwrap();
        assert_eq!(state(), LogState::Clean, "{round}");
        newest.repair_check(&copy).unwrap();
        let before = std::fs::read(&image).unwrap();
        volume.settle().unwrap();
        assert!(before == std::fs::read(&image).unwrap(), "{round}: there was nothing to do");
    }
    make_files(1);
    volume.close().unwrap();
    drop(volume);
    newest.repair_check(&image).unwrap();
}
