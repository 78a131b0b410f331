//! Cuts of the power while tickets are under way: every file whose ticket was answered is there,
//! whole.

use undercroft_block::testing::recorder::Unflushed;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, kernel};
use undercroft_testkit::disk;
use undercroft_testkit::xfs::fsync::cuts::{FILES, len, name, note, record, run};
use undercroft_testkit::xfs::fsync::work::{contents, repair_is_content};

#[test]
fn every_file_whose_ticket_was_answered_is_there_whole() {
    let cuts = run(11, 12);
    assert!(cuts > 50, "{cuts} cuts");
}

#[test]
fn a_kernel_finds_them_too() {
    if !kernel::available_or_report() {
        return;
    }
    let seed = 12;
    let mut recording = record(seed);
    let end = recording.events().len();
    let mut durable = Vec::new();
    let directory = tempfile::tempdir().unwrap();
    for (number, stop) in [end / 3, end / 2, end - 10].into_iter().enumerate() {
        while recording.position() < stop {
            note(recording.step().unwrap(), &mut durable);
        }
        let image = directory.path().join(format!("cut-{number}"));
        disk::save(recording.disk(Unflushed::Torn { seed: number as u64 }).as_ref(), &image);
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        for number in &durable {
            let found = std::fs::read(mount.join(name(*number))).unwrap();
            assert!(found == contents(*number, len(*number, seed)), "contents of {number}");
        }
        mount.unmount().unwrap();
        repair_is_content(&image);
    }
    assert!(durable.len() > FILES / 2);
}
