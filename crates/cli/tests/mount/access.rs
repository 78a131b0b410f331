//! Times of access, beside those of the kernel's mount.

use crate::mounted::Volume;
use rustix::fs::{Advice, Mode, OFlags};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use undercroft_judges::kernel;
use undercroft_judges::mount::{Access, LoopMount};

/// Longer than the kernel's clock of files takes for a step.
const TICKS: Duration = Duration::from_millis(20);

/// The time of access of a path, by the links themselves.
fn accessed(path: &Path) -> (i64, i64) {
    let metadata = fs::symlink_metadata(path).unwrap();
    (metadata.atime(), metadata.atime_nsec())
}

/// Which of several reads, and other things, set a time of access in a directory.
fn times_set(root: &Path) -> Vec<(&'static str, bool)> {
    let (file, link, directory) = (root.join("file"), root.join("link"), root.join("directory"));
    let text = vec![7; 20_000];
    let change = || {
        sleep(TICKS);
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"more").unwrap();
        sleep(TICKS);
    };
    let noted = |what, path: &Path, act: &dyn Fn()| {
        let before = accessed(path);
        sleep(TICKS);
        act();
        (what, accessed(path) != before)
    };
    let read = || drop(fs::read(&file).unwrap());
    fs::write(&file, &text).unwrap();
    let mut told = vec![noted("the first read", &file, &read), noted("the next", &file, &read)];
    change();
    told.push(noted("a read behind a change", &file, &read));
    told.push(noted("the next", &file, &read));
    change();
    told.push(noted("an opening", &file, &|| drop(File::open(&file).unwrap())));
    let flags = OFlags::RDONLY | OFlags::NOATIME;
    let quietly = || {
        let mut file = File::from(rustix::fs::open(&file, flags, Mode::empty()).unwrap());
        file.read_to_end(&mut Vec::new()).unwrap();
    };
    told.push(noted("a read without a time", &file, &quietly));
    let part = || {
        let file = File::options().write(true).open(&file).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        file.write_all_at(b"part", 100).unwrap();
        file.sync_all().unwrap();
    };
    told.push(noted("a write of a part of a page", &file, &part));
    told.push(noted("a read behind it", &file, &read));
    symlink("file", &link).unwrap();
    let follow = || drop(fs::read_link(&link).unwrap());
    told.push(noted("a look at a link", &link, &follow));
    told.push(noted("the next", &link, &follow));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("file"), "x").unwrap();
    let list = || assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    told.push(noted("a listing", &directory, &list));
    told.push(noted("the next", &directory, &list));
    told
}

#[test]
fn reads_set_times_as_on_the_kernels_mount() {
    for options in ["relatime", "strictatime", "noatime"] {
        if !kernel::available_or_report() {
            return;
        }
        let (volume, other) = (Volume::new(), Volume::sized("320M"));
        let theirs = LoopMount::new(&other.image(), Access::ReadWrite, &[options]).unwrap();
        let mounted = volume.mount(&["-o", options]);
        assert_eq!(times_set(&volume.at()), times_set(theirs.path()), "{options}");
        theirs.unmount().unwrap();
        mounted.unmount();
    }
}
