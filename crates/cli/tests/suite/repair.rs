//! `undercroft repair`: a plan, the repair, and back again.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Output;

use crate::run::{succeeds, undercroft};

/// A volume of some files, with the header of the free space of its first group zeroed.
fn damaged(directory: &Path) -> String {
    let tree = directory.join("tree");
    for name in ["a", "b", "c"] {
        fs::create_dir_all(tree.join(name)).unwrap();
        fs::write(tree.join(name).join("file"), name.repeat(5000)).unwrap();
    }
    let image = directory.join("disk.img").to_str().unwrap().to_owned();
    succeeds(["build", "--size", "64M", tree.to_str().unwrap(), &image]);
    zero(&image, 512, 512);
    image
}

fn zero(image: &str, at: u64, len: usize) {
    let file = fs::File::options().write(true).open(image).unwrap();
    file.write_all_at(&vec![0; len], at).unwrap();
}

fn status(output: &Output) -> Option<i32> {
    output.status.code()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_volume_is_repaired_and_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let image = damaged(directory.path());
    let before = fs::read(&image).unwrap();
    let plan = undercroft(["repair", "--dry-run", &image]);
    assert_eq!(status(&plan), Some(4), "{}", text(&plan));
    assert!(text(&plan).contains("allocation group 0") && text(&plan).contains("nothing is lost"));
    assert!(fs::read(&image).unwrap() == before, "a plan changes nothing");
    let done = undercroft(["repair", &image]);
    assert_eq!(status(&done), Some(1), "{}", text(&done));
    succeeds(["check", &image]);
    let content = succeeds(["cat", &image, "/b/file"]);
    assert_eq!(content, "b".repeat(5000));
    // Sound now: nothing is done, and no file made.
    assert_eq!(status(&undercroft(["repair", &image])), Some(0));
    let undo = format!("{image}.undo");
    assert!(!Path::new(&format!("{undo}.2")).exists());
    succeeds(["repair", "--undo-with", &undo, &image]);
    assert!(fs::read(&image).unwrap() == before, "it is as it was");
}

#[test]
fn a_copy_is_repaired_and_the_image_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let image = damaged(directory.path());
    let before = fs::read(&image).unwrap();
    let copy = directory.path().join("copy.img").to_str().unwrap().to_owned();
    let done = undercroft(["repair", "--json", "--to", &copy, &image]);
    assert_eq!(status(&done), Some(1), "{}", text(&done));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["written"], true);
    assert!(!report["actions"].as_array().unwrap().is_empty());
    succeeds(["check", &copy]);
    assert!(fs::read(&image).unwrap() == before);
    // What exists is not replaced.
    assert_eq!(status(&undercroft(["repair", "--to", &copy, &image])), Some(8));
}

#[test]
fn fsck_repairs_what_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let image = damaged(directory.path());
    assert_eq!(status(&undercroft(["fsck", "-n", &image])), Some(4));
    let done = undercroft(["fsck", "-y", &image]);
    assert_eq!(status(&done), Some(1), "{}", text(&done));
    assert_eq!(status(&undercroft(["fsck", "-n", &image])), Some(0));
}

#[test]
fn what_cannot_be_repaired_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("noise").to_str().unwrap().to_owned();
    fs::write(&image, vec![0x5a; 1 << 20]).unwrap();
    let before = fs::read(&image).unwrap();
    let refused = undercroft(["repair", &image]);
    assert_eq!(status(&refused), Some(8), "{}", text(&refused));
    assert!(fs::read(&image).unwrap() == before);
    assert_eq!(status(&undercroft(["repair", "--undo-with", &image, &image])), Some(8));
}
