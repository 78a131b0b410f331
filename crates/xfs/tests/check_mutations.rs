//! Mutated metadata with right checksums never makes the check panic, or read without end.

mod mutation;

use mutation::Subject;
use undercroft_judges::damage::volume;
use undercroft_judges::kernel;

const ROUNDS: usize = 400;

#[test]
fn mutated_volumes_are_checked_to_the_end() {
    if !kernel::available_or_report("xfs::check::mutated_volumes_are_checked_to_the_end") {
        return;
    }
    let (_directory, image) = volume().unwrap();
    let mut subject = Subject::new(&std::fs::read(image).unwrap(), 0x5eed).unwrap();
    let pristine = subject.check().unwrap();
    assert!(pristine.is_clean() && subject.pieces() > 200, "{pristine:?}");
    let mut dirty = 0;
    for round in 0..ROUNDS {
        let Some(report) = subject.round().unwrap() else { continue };
        // No block is followed twice; a changed length may lead to blocks that are no metadata.
        let limit = 2 * pristine.bytes + (32 << 20);
        assert!(report.bytes < limit, "round {round} read {} bytes", report.bytes);
        dirty += usize::from(!report.is_clean());
    }
    assert!(dirty > ROUNDS / 2, "{dirty} of {ROUNDS} were seen");
    assert_eq!(subject.check().unwrap(), pristine);
}
