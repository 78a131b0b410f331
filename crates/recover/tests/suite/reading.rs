//! How often a volume is read.

use std::fs;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_recover::{Disk, Removed, Timeline};

use crate::tree::BYTES;

/// The timeline needs what the search for removed files reads, and the names of directories.
#[test]
fn the_timeline_reads_inodes_and_journal_once() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, BYTES, &[]).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    for number in 0..3000 {
        fs::write(mount.join(format!("file-{number}")), "text").unwrap();
    }
    fs::remove_file(mount.join("file-7")).unwrap();
    mount.unmount().unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, true).unwrap());
    let disk = Disk::new(Arc::clone(&device)).unwrap();
    let read = || device.statistics().bytes_read;
    let before = read();
    Removed::find(&disk, &mut |_, _, _| {}).unwrap();
    let search = read() - before;
    let events = Timeline::find(&disk, &mut |_, _, _| {}).unwrap().events;
    let timeline = read() - before - search;
    assert!(events.len() >= 3000, "{}", events.len());
    let (inodes, journal) = (3000 * 512, 64 << 20);
    assert!(search > inodes + journal, "{search}");
    assert!(
        timeline < search + inodes / 2,
        "{timeline} bytes for the timeline, {search} for the search"
    );
}
