//! Our check and the newest `xfs_repair -n` agree about volumes with one wrong field. The long form
//! is `cargo xtask soak check`.

use std::path::Path;
use undercroft_judges::damage::volume;
use undercroft_judges::{Xfsprogs, kernel};
use undercroft_testkit::xfs::check::{check_image, describe};
use undercroft_testkit::xfs::fields::{Fields, old_volume};

const ROUNDS: u64 = 100;

#[test]
fn check_and_repair_agree_about_single_fields() {
    if !kernel::available_or_report() {
        return;
    }
    let (directory, image) = volume().unwrap();
    agree(directory.path(), &image, 300);
}

#[test]
fn check_and_repair_agree_about_single_fields_of_version_4() {
    let (directory, image) = old_volume().unwrap();
    agree(directory.path(), &image, 100);
}

/// Damages that only `xfs_repair` saw.
#[test]
fn what_is_not_of_version_4_is_seen() {
    let (directory, image) = old_volume().unwrap();
    let pristine = std::fs::read(&image).unwrap();
    let copy = directory.path().join("copy");
    let tools = Xfsprogs::newest().unwrap();
    let scripts: [&[&str]; 4] = [
        &["path /file", "write core.onlink 5"],
        &["path /file", "write core.newrtbm 1"],
        &["path /none", "write core.newrtbm 1"],
        &["path /link", "write u.bmx[0].startoff 67108864"],
    ];
    let distribution = Xfsprogs::distribution().unwrap();
    for script in scripts {
        std::fs::write(&copy, &pristine).unwrap();
        distribution.db_expert(&copy, script).unwrap();
        assert_both_refuse(&tools, &copy, &format!("{script:?}"));
    }
    let groups = pristine.len() / 4;
    // Behind the superblock; where its second word of features is not said to be; quotas of version 5.
    let planted = [(0, 208, 1), (1, 208, 1), (1, 300, 1), (3, 511, 1), (2, 100, 0x80), (0, 176, 2)];
    for (group, byte, bits) in planted {
        let mut bytes = pristine.clone();
        bytes[group * groups + byte] ^= bits;
        std::fs::write(&copy, &bytes).unwrap();
        assert_both_refuse(&tools, &copy, &format!("byte {byte} of group {group}"));
    }
}

/// Fails the test unless both find fault.
#[track_caller]
fn assert_both_refuse(tools: &Xfsprogs, image: &Path, name: &str) {
    assert!(tools.repair_check(image).is_err(), "{name}: xfs_repair accepts it");
    let (report, findings) = check_image(image).unwrap();
    assert!(!report.is_clean(), "{name}: {report:?} {}", describe(&findings));
}

/// Fails the test unless both agree, or differ as CONTRIBUTING.md says, about a volume of at least
/// so many fields.
fn agree(directory: &Path, image: &Path, least: usize) {
    let fields = Fields::new(image).unwrap();
    assert!(fields.count() > least, "only {} fields are there", fields.count());
    let outcome = fields.compare(directory, ROUNDS, 7, &|_| {}).unwrap();
    let unknown: Vec<String> =
        outcome.differences.iter().filter(|it| !it.is_known).map(ToString::to_string).collect();
    assert!(unknown.is_empty(), "not in CONTRIBUTING.md:\n{}", unknown.join("\n"));
    assert!(outcome.compared > ROUNDS / 2 && outcome.refused > ROUNDS / 3, "{outcome:?}");
}
