//! The status of a mount.

use crate::mounted::{Volume, fails, succeeds, undercroft};
use std::fs::{self, File};

#[test]
fn the_status_tells_what_is_there() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let files: Vec<File> =
        (0..10).map(|number| File::create(mounted.path(format!("{number}"))).unwrap()).collect();
    fs::metadata(mounted.path("none")).unwrap_err();
    let json = succeeds(undercroft().args(["status", "--json"]).arg(volume.at()));
    let status: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["known_files"], 11);
    assert_eq!(status["read_only"], false);
    assert_eq!(status["image"], volume.image().display().to_string());
    assert!(status["journal"].as_u64().unwrap() > 0);
    assert!(status["requests"].as_u64().unwrap() >= 10);
    let process = status["pid"].as_u64().unwrap();
    assert!(fs::exists(format!("/proc/{process}")).unwrap());
    drop(files);
    let text = succeeds(undercroft().arg("status").arg(volume.at()));
    assert!(text.contains("read and written") && text.contains("errors:"), "{text}");
    mounted.unmount();
    let said = fails(1, undercroft().arg("status").arg(volume.at()));
    assert!(said.contains("is not the root of a volume"), "{said}");
}
