//! The examples, run.

use crate::volumes::{image, memory, open, options};
use undercroft_fs::FileSystem;

#[path = "../../examples/cat.rs"]
mod cat;
#[path = "../../examples/serve.rs"]
mod serve;

#[test]
fn cat_prints_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("image");
    let fs = FileSystem::open(image(&path), &options()).unwrap();
    fs.create_dir("/etc").unwrap();
    fs.write("/etc/os-release", "NAME=x\n").unwrap();
    fs.close().unwrap();
    drop(fs);
    let mut out = Vec::new();
    cat::cat(&path, "/etc/os-release", &mut out).unwrap();
    assert_eq!(out, b"NAME=x\n");
    let error = cat::cat(&path, "/none", &mut out).unwrap_err();
    assert_eq!(error.to_string(), "/none: no such file or directory");
}

#[test]
fn serve_answers_all_and_leaves_a_clean_volume() {
    let device = memory();
    let bytes = serve::serve(device.clone(), 8).unwrap();
    let fs = open(&device);
    assert!(fs.volume().recovery().is_none(), "closed, so nothing was replayed");
    let files: Vec<_> = fs.read_dir("/").unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(files.len(), 7, "one was removed");
    let stored: u64 = files.iter().map(|entry| entry.metadata().size).sum();
    assert_eq!(stored / 7 * 8, bytes);
}
