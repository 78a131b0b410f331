//! Images of several files appear at once.

use super::*;
use std::fs;
use std::path::Path;
use undercroft_block::{Sector, flush, write_all_at};

fn description(directory: &Path, text: &str) -> Description {
    let mut text = text.to_owned();
    for name in ["a", "b", "c"] {
        text = text.replace(&format!("${name}"), &directory.join(name).display().to_string());
    }
    text.parse().unwrap()
}

fn listing(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

/// A target with something written to it.
fn written(image: &Description, force: bool) -> Target {
    let mut target = Target::open(image, force, ImageFormat::Raw).unwrap();
    let device = target.device(64 << 10).unwrap();
    write_all_at(&*device, Sector(0), &[7; 64 << 10]).unwrap();
    flush(&*device).unwrap();
    target
}

#[test]
fn all_files_appear_at_the_end() {
    let home = tempfile::tempdir().unwrap();
    let image = description(home.path(), "stripe:4k($a,linear($b,$c))");
    let target = written(&image, false);
    assert_eq!(listing(home.path()), [""; 0]);
    drop(target);
    assert_eq!(listing(home.path()), [""; 0]);
    written(&image, false).finish(true, &mut |_| ()).unwrap();
    assert_eq!(listing(home.path()), ["a", "b", "c"]);
    let lengths = ["a", "b", "c"].map(|name| fs::metadata(home.path().join(name)).unwrap().len());
    assert_eq!(lengths, [32 << 10, 16 << 10, 16 << 10]);
    assert!(matches!(Target::open(&image, false, ImageFormat::Raw), Err(PackError::Exists(_))));
}

#[test]
fn existing_files_are_replaced_together() {
    let home = tempfile::tempdir().unwrap();
    let image = description(home.path(), "mirror($a,$b,$c)");
    for old in ["a", "c"] {
        fs::write(home.path().join(old), "old").unwrap();
    }
    let target = written(&image, true);
    assert_eq!(fs::read(home.path().join("a")).unwrap(), b"old");
    target.finish(false, &mut |_| ()).unwrap();
    assert_eq!(listing(home.path()), ["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert!(fs::read(home.path().join(name)).unwrap() == [7; 64 << 10]);
    }
}

#[test]
fn a_name_that_cannot_be_given_leaves_everything_as_it_was() {
    for taken in ["a", "b", "c"] {
        let home = tempfile::tempdir().unwrap();
        let image = description(home.path(), "mirror($a,$b,$c)");
        for old in ["a", "b", "c"].into_iter().filter(|name| *name != taken) {
            fs::write(home.path().join(old), old).unwrap();
        }
        let target = written(&image, true);
        // Another program takes the one name that was free.
        fs::write(home.path().join(taken), taken).unwrap();
        let error = target.finish(false, &mut |_| ()).unwrap_err();
        let PackError::Target { action: "name", image, .. } = &error else { panic!("{error}") };
        assert_eq!(*image, home.path().join(taken));
        assert_eq!(listing(home.path()), ["a", "b", "c"]);
        for name in ["a", "b", "c"] {
            assert_eq!(fs::read_to_string(home.path().join(name)).unwrap(), name);
        }
    }
}

#[test]
fn a_file_is_there_once() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("b"), "").unwrap();
    fs::hard_link(home.path().join("b"), home.path().join("c")).unwrap();
    fs::create_dir(home.path().join("d")).unwrap();
    for text in ["linear($a,$a)", "linear($a,$d/../a)", "stripe:4k($b,$c)"] {
        let directory = home.path().display().to_string();
        let image = description(home.path(), &text.replace("$d", &format!("{directory}/d")));
        let error = Target::open(&image, true, ImageFormat::Raw).unwrap_err();
        assert!(matches!(error, PackError::Stack(StackError::Twice { .. })), "{error}");
    }
}
