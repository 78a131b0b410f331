//! Our check and the newest `xfs_repair -n` agree about volumes with one wrong field. The long form
//! is `cargo xtask soak check`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod fields;

use fields::Fields;
use undercroft_judges::damage::volume;
use undercroft_judges::kernel;

const ROUNDS: u64 = 100;

#[test]
fn check_and_repair_agree_about_single_fields() {
    if !kernel::available_or_report("xfs::check::check_and_repair_agree_about_single_fields") {
        return;
    }
    let (directory, image) = volume().unwrap();
    let fields = Fields::new(&image).unwrap();
    assert!(fields.count() > 300, "only {} fields are there", fields.count());
    let outcome = fields.compare(directory.path(), ROUNDS, 7, &|_| {}).unwrap();
    let unknown: Vec<String> =
        outcome.differences.iter().filter(|it| !it.is_known).map(ToString::to_string).collect();
    assert!(unknown.is_empty(), "not in CONTRIBUTING.md:\n{}", unknown.join("\n"));
    assert!(outcome.compared > ROUNDS / 2 && outcome.refused > ROUNDS / 3, "{outcome:?}");
}
