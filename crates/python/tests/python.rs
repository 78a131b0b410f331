//! Runs the programs in Python beside this file, with the module that was just built.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use undercroft_judges::Xfsprogs;

/// The interpreter of the system, for which the packages of the tests are.
const PYTHON: &str = "/usr/bin/python3";

/// The library that was built with this test: beside it, or above it.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let places = test.ancestors().skip(1).take(2);
    let libraries = places.map(|place| place.join("libundercroft_native.so"));
    let newest = libraries.filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)));
    newest.max().expect("the module was built before its tests").1
}

/// Puts the package together as a wheel has it.
fn package(home: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("undercroft");
    let package = home.join("undercroft");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(source).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), package.join(entry.file_name())).unwrap();
        }
    }
    fs::copy(library(), package.join("undercroft_native.abi3.so")).unwrap();
}

fn run(arguments: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    package(home.path());
    let tools = Xfsprogs::newest().unwrap();
    let repair = tools.tool("xfs_repair").unwrap();
    let mut python = Command::new(PYTHON);
    python.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    python.env("PYTHONPATH", home.path()).env("UNDERCROFT_XFS_REPAIR", repair);
    python.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONDEVMODE", "1");
    let done = python.output().unwrap();
    let (out, errors) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    println!("{out}{errors}");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn programs_use_volumes() {
    run(&["-m", "unittest", "-v", "test_volume"]);
}

#[test]
fn fsspec_finds_its_way() {
    run(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_fsspec.py"]);
}
