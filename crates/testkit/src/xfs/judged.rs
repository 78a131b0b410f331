//! The word of the judges on an image.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::Xfsprogs;
use undercroft_xfs::check::{CheckOptions, check};

/// Fails unless our own check and `xfs_repair -n` find nothing.
pub fn sound(image: &Path, what: &str) {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    let mut findings = Vec::new();
    let report =
        check(device, &CheckOptions::default(), &mut |finding| findings.push(finding)).unwrap();
    let first: Vec<String> = findings.iter().take(10).map(ToString::to_string).collect();
    assert!(report.is_clean(), "{what}: {report:?}\n{}", first.join("\n"));
    if let Err(complaint) = Xfsprogs::newest().unwrap().repair_check(image) {
        panic!("{what}: {complaint}");
    }
}
