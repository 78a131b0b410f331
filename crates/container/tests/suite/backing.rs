//! Images that have only the changes to others.

use crate::qemu::{by_qemu, bytes, content, open, qemu_img, raw};
use std::fs;
use std::process::Command;
use undercroft_block::stack::DiskFormat;

#[test]
fn a_chain_is_read_when_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    raw(home.path(), "base.img", &content(3));
    let chain = [("base.img", "raw", "middle"), ("middle", "qcow2", "top")];
    for (number, (below, format, name)) in chain.into_iter().enumerate() {
        let options = format!("backing_file={below},backing_fmt={format}");
        qemu_img(&["create", "-qf", "qcow2", "-o", &options, &path(name)]);
        let write = format!("write -P {} {}k 100k", 0x31 + number, number * 700 + 33);
        let wrote =
            Command::new("qemu-io").args(["-f", "qcow2", "-c", &write, &path(name)]).output();
        assert!(wrote.unwrap().status.success());
    }
    let refused = open(&path("top"), true, DiskFormat::Auto).unwrap_err();
    assert!(refused.contains("\"middle\"") && refused.contains("allowed"), "{refused}");
    let device = open(&path("top"), true, DiskFormat::Backed).unwrap();
    assert!(bytes(&*device).unwrap() == by_qemu(&path("top")));
    // Changes go to the image alone.
    let below = ["base.img", "middle"].map(|name| fs::read(path(name)).unwrap());
    drop(device);
    let device = open(&path("top"), false, DiskFormat::Backed).unwrap();
    undercroft_block::write_all_at(&*device, undercroft_block::Sector(8), &[9; 4096]).unwrap();
    drop(device);
    assert!(below == ["base.img", "middle"].map(|name| fs::read(path(name)).unwrap()));
    assert!(by_qemu(&path("top"))[4096..8192].iter().all(|byte| *byte == 9));
    assert!(qemu_img(&["check", &path("top")]).contains("No errors"));
}

#[test]
fn files_elsewhere_and_circles_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir(path("images")).unwrap();
    raw(home.path(), "secret", &[7; 1 << 20]);
    std::os::unix::fs::symlink("../secret", path("images/link")).unwrap();
    for (name, below) in [("up", "../secret"), ("linked", "link"), ("absolute", &path("secret"))] {
        let image = path(&format!("images/{name}"));
        let options = format!("backing_file={below},backing_fmt=raw");
        qemu_img(&["create", "-qf", "qcow2", "-u", "-o", &options, &image, "1M"]);
        let error = open(&image, true, DiskFormat::Backed).unwrap_err();
        assert!(error.contains("not in its directory"), "{name}: {error}");
    }
    let circle = path("images/circle");
    let options = "backing_file=circle,backing_fmt=qcow2";
    qemu_img(&["create", "-qf", "qcow2", "-u", "-o", options, &circle, "1M"]);
    let error = open(&circle, true, DiskFormat::Backed).unwrap_err();
    assert!(error.contains("circle"), "{error}");
}
