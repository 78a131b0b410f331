//! Times of access.

use crate::volumes::{NOW, memory, open};
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_fs::{
    AccessTimes, Allocation, Change, Clock, Existing, FileSystem, NewFile, OpenOptions, SetTime,
    Timestamp,
};

const DAY: i64 = 86_400;

fn later(seconds: i64) -> Timestamp {
    Timestamp { seconds: NOW.seconds + seconds, ..NOW }
}

fn at(fs: &FileSystem, seconds: i64) -> FileSystem {
    fs.clone().with_clock(Clock::Fixed(later(seconds)))
}

fn accessed(fs: &FileSystem, path: &str) -> Timestamp {
    fs.symlink_metadata(path).unwrap().accessed
}

#[test]
fn a_read_counts_after_a_change_and_once_a_day() {
    let fs = open(&memory());
    fs.write("/file", "bytes").unwrap();
    at(&fs, 10).read("/file").unwrap();
    assert_eq!(accessed(&fs, "/file"), later(10));
    at(&fs, 20).read("/file").unwrap();
    assert_eq!(accessed(&fs, "/file"), later(10), "read since the change");
    at(&fs, 30).write("/file", "other").unwrap();
    at(&fs, 40).read("/file").unwrap();
    assert_eq!(accessed(&fs, "/file"), later(40));
    at(&fs, 40 + DAY - 1).read("/file").unwrap();
    assert_eq!(accessed(&fs, "/file"), later(40));
    at(&fs, 40 + DAY).read("/file").unwrap();
    assert_eq!(accessed(&fs, "/file"), later(40 + DAY));
}

#[test]
fn listings_and_links_count_too() {
    let fs = open(&memory());
    fs.create_dir("/directory").unwrap();
    fs.symlink("target", "/link").unwrap();
    let fs = at(&fs, 5);
    fs.read_dir("/directory").unwrap().count();
    fs.read_link("/link").unwrap();
    assert_eq!(accessed(&fs, "/directory"), later(5));
    assert_eq!(accessed(&fs, "/link"), later(5));
}

#[test]
fn the_rule_is_an_option() {
    let device = memory();
    let fs = open(&device);
    fs.write("/file", "bytes").unwrap();
    at(&fs, 10).with_access_times(AccessTimes::Never).read("/file").unwrap();
    assert_eq!(accessed(&fs, "/file"), NOW);
    let always = fs.clone().with_access_times(AccessTimes::Always);
    for seconds in [1, 2, 3] {
        at(&always, seconds).read("/file").unwrap();
        assert_eq!(accessed(&fs, "/file"), later(seconds));
    }
}

fn reopened(device: &Arc<dyn BlockDevice>) -> FileSystem {
    FileSystem::open(Arc::clone(device), &OpenOptions::read_only()).unwrap()
}

#[test]
fn a_close_stores_them() {
    let device = memory();
    let fs = open(&device);
    // More than wait in memory at a time.
    for number in 0..1500 {
        fs.write(format!("/{number}"), "x").unwrap();
    }
    fs.sync_and_wait().unwrap();
    for number in 0..1500 {
        at(&fs, 9).read(format!("/{number}")).unwrap();
    }
    fs.close().unwrap();
    let fs = reopened(&device);
    for number in 0..1500 {
        assert_eq!(accessed(&fs, &format!("/{number}")), later(9), "{number}");
    }
    fs.read("/7").unwrap();
}

#[test]
fn another_change_takes_them_along() {
    let device = memory();
    let fs = open(&device);
    fs.write("/file", "bytes").unwrap();
    fs.sync_and_wait().unwrap();
    at(&fs, 9).read("/file").unwrap();
    let file = fs.open_file("/file").unwrap();
    file.set_attributes(&Change { mode: Some(0o600), ..Change::default() }).unwrap();
    file.fsync_and_wait().unwrap();
    drop((file, fs));
    assert_eq!(accessed(&reopened(&device), "/file"), later(9));
}

#[test]
fn a_file_that_is_set_and_removed_leaves_none() {
    let fs = open(&memory());
    fs.write("/file", "bytes").unwrap();
    at(&fs, 9).read("/file").unwrap();
    let file = fs.open_file("/file").unwrap();
    let set = Change { accessed: Some(SetTime::To(later(-50))), ..Change::default() };
    assert_eq!(file.set_attributes(&set).unwrap().accessed, later(-50));
    at(&fs, 10).read("/file").unwrap();
    drop(file);
    fs.remove_file("/file").unwrap();
    fs.close().unwrap();
}

/// Also while data waits in memory that was written before.
#[test]
fn times_that_are_set_stay_when_data_is_written_back() {
    let device = memory();
    let fs = open(&device);
    let (_, file) =
        fs.nodes().create(fs.root(), b"file", &NewFile::new(0o600), Existing::Refuse).unwrap();
    file.write_at(0, b"some bytes").unwrap();
    let set = Change {
        modified: Some(SetTime::To(later(-50))),
        changed: Some(later(7)),
        ..Change::default()
    };
    let metadata = file.set_attributes(&set).unwrap();
    assert_eq!((metadata.modified, metadata.changed), (later(-50), later(7)));
    let cached = fs.clone().with_kept_times();
    let held_back = cached.nodes().open(file.number()).unwrap();
    held_back.write_at(20, b"held back").unwrap();
    held_back.append(b", appended").unwrap();
    held_back.allocate(Allocation::PunchHole, 0..4).unwrap();
    held_back.fsync_and_wait().unwrap();
    assert_eq!(file.metadata().modified, later(-50));
    drop((file, held_back, cached, fs));
    let again = reopened(&device).metadata("/file").unwrap();
    assert_eq!((again.modified, again.changed), (later(-50), later(7)));
}
