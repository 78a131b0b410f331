//! Mutated metadata with right checksums never makes the check panic, or read without end.

use std::sync::Arc;
use undercroft_block::MemoryDevice;
use undercroft_judges::damage::volume;
use undercroft_judges::kernel;
use undercroft_testkit::xfs::mutation::Subject;

const ROUNDS: usize = 400;

#[test]
fn mutated_volumes_are_checked_to_the_end() {
    if !kernel::available_or_report() {
        return;
    }
    let (_directory, image) = volume().unwrap();
    let image = std::fs::read(image).unwrap();
    let device = Arc::new(MemoryDevice::new(image.len() as u64));
    let mut subject = Subject::new(device, &image, 0x5eed).unwrap();
    let (pristine, _) = subject.check().unwrap();
    assert!(pristine.is_clean() && subject.pieces() > 200, "{pristine:?}");
    let mut dirty = 0;
    for round in 0..ROUNDS {
        // A superblock of another magic is an error, everything else a report.
        let Ok((report, _)) = subject.round(4, Subject::check).unwrap() else { continue };
        // No block is followed twice; a changed length may lead to blocks that are no metadata.
        let limit = 2 * pristine.bytes + (32 << 20);
        assert!(report.bytes < limit, "round {round} read {} bytes", report.bytes);
        dirty += usize::from(!report.is_clean());
    }
    assert!(dirty > ROUNDS / 2, "{dirty} of {ROUNDS} were seen");
    assert_eq!(subject.check().unwrap(), (pristine, Vec::new()));
}
