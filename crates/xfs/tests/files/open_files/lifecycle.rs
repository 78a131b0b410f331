//! Files that come, go, and stay as long as they are open.

use super::stand::{BLOCK, NOW, check_clean, close, contents, find, live, make, open, read_all};
use super::stand::{root, unlink};
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::stack::Overlay;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, Name, NewInode, RenameMode};
use undercroft_xfs::{Error, OpenFile};

#[test]
fn a_number_that_is_used_again_loses_no_data() {
    let (device, volume) = open(64 << 20);
    let first = make(&volume, "a").unwrap();
    first.write(0, b"0123456789", NOW).unwrap();
    let number = first.number();
    drop(first);
    unlink(&volume, "a").unwrap();
    let second = make(&volume, "b").unwrap();
    assert_eq!(second.number(), number, "the number is used again");
    second.write(0, b"abcdefghij", NOW).unwrap();
    drop(second);
    volume.sync_all().wait().unwrap();
    let volume = close(&device, &volume);
    assert_eq!(contents(&volume, "b"), b"abcdefghij");
}

#[test]
fn number_and_generation_never_come_again() {
    let (device, mut volume) = open(64 << 20);
    let mut seen = std::collections::HashSet::new();
    for round in 0..200 {
        let file = make(&volume, "file").unwrap();
        let (number, generation) = (file.number(), file.generation());
        assert!(seen.insert((number, generation)), "round {round}: {number} {generation}");
        drop(file);
        assert!(OpenFile::open_handle(&volume, number, generation).is_ok());
        unlink(&volume, "file").unwrap();
        let gone = OpenFile::open_handle(&volume, number, generation).map(drop);
        assert!(matches!(gone, Err(Error::Stale { inode }) if inode == number), "{gone:?}");
        if round % 50 == 49 {
            volume.close().unwrap();
            volume = live(&device);
        }
    }
}

#[test]
fn a_file_without_a_name_stays_as_long_as_it_is_open() {
    let (device, volume) = open(64 << 20);
    let before = volume.usage().unwrap();
    let (one, data) = (make(&volume, "file").unwrap(), vec![7; 3 * BLOCK + 5]);
    let two = OpenFile::open(&volume, one.number()).unwrap();
    one.write(0, &data, NOW).unwrap();
    unlink(&volume, "file").unwrap();
    assert_eq!(find(&volume, "file"), None);
    one.fsync().wait().unwrap();
    drop(one);
    two.write(data.len() as u64, b"more", NOW).unwrap();
    assert_eq!(read_all(&two), [&data[..], b"more"].concat());
    // While it is open it can be opened again, by its number.
    drop(OpenFile::open(&volume, two.number()).unwrap());
    let number = two.number();
    two.close().unwrap();
    assert!(matches!(OpenFile::open(&volume, number), Err(Error::Stale { .. })));
    volume.sync().unwrap();
    assert_eq!(volume.usage().unwrap(), before);
    close(&device, &volume);
}

#[test]
fn what_a_rename_replaces_stays_as_long_as_it_is_open() {
    let (device, volume) = open(64 << 20);
    let old = make(&volume, "old").unwrap();
    old.write(0, b"old", NOW).unwrap();
    make(&volume, "new").unwrap().write(0, b"new", NOW).unwrap();
    let at = |name: &'static str| Name { parent: root(&volume), name: name.as_bytes() };
    ops::rename(&volume, at("new"), at("old"), RenameMode::Replace, NOW).unwrap();
    assert_eq!(read_all(&old), b"old");
    assert_eq!(contents(&volume, "old"), b"new");
    drop(old);
    close(&device, &volume);
}

#[test]
fn closing_frees_open_files_without_a_name() {
    let (device, volume) = open(64 << 20);
    let before = volume.usage().unwrap();
    let file = make(&volume, "file").unwrap();
    file.write(0, &[1; 100 * BLOCK], NOW).unwrap();
    let tmp =
        ops::create_unlinked(&volume, root(&volume), &NewInode::new(FileType::Regular, 0o600));
    let tmp = tmp.unwrap();
    tmp.write(0, b"nobody's", NOW).unwrap();
    unlink(&volume, "file").unwrap();
    volume.close().unwrap();
    check_clean(&device);
    // An inode that is held still tells that it was freed.
    let mut bytes = [0; 4];
    assert!(matches!(file.read(0, &mut bytes), Err(Error::Stale { .. })));
    drop((file, tmp));
    let again = live(&device);
    assert_eq!(again.usage().unwrap(), before);
    again.close().unwrap();
}

/// Volumes that were closed with such files by a program that did not free them.
#[test]
fn opening_frees_what_was_left_without_a_name() {
    let (device, volume) = open(64 << 20);
    let before = volume.usage().unwrap();
    let file = make(&volume, "file").unwrap();
    file.write(0, &[1; 100 * BLOCK], NOW).unwrap();
    file.fsync_and_wait().unwrap();
    unlink(&volume, "file").unwrap();
    volume.sync().unwrap();
    // As a crash leaves it: the file is open, and the device has what it has.
    let device: Arc<dyn BlockDevice> = Arc::new(Overlay::new(device));
    let left = live(&device);
    assert_eq!(left.usage().unwrap(), before);
    close(&device, &left);
    drop((file, volume));
}

#[test]
fn a_file_without_a_name_can_get_one() {
    let (device, volume) = open(64 << 20);
    let new = NewInode::new(FileType::Regular, 0o600);
    let file = ops::create_unlinked(&volume, root(&volume), &new).unwrap();
    file.write(0, b"kept", NOW).unwrap();
    ops::link(&volume, file.number(), root(&volume), b"name", NOW).unwrap();
    drop(file);
    let volume = close(&device, &volume);
    assert_eq!(contents(&volume, "name"), b"kept");
}

#[test]
fn a_gone_file_is_stale_and_not_damaged() {
    let (_device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    let (number, inode) = (file.number(), file.inode().clone());
    drop(file);
    unlink(&volume, "file").unwrap();
    let stale = |result: Result<(), Error>| match result {
        Err(error @ Error::Stale { .. }) => assert!(!error.is_damage(), "{error}"),
        other => panic!("{other:?}"),
    };
    stale(OpenFile::open(&volume, number).map(drop));
    stale(volume.inode(number).map(drop));
    stale(OpenFile::open_handle(&volume, number, 1).map(drop));
    assert_eq!(inode.read().core.mode, 0);
}
