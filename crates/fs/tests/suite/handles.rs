//! Files held, and numbers kept.

use crate::volumes::{close_and_check, contents, create, fresh, memory, open};
use undercroft_fs::{Error, InodeNumber, NewFile};

#[test]
fn a_file_unlinked_while_open_stays_until_it_is_let_go() {
    let device = memory();
    let fs = open(&device);
    let before = fs.statfs().unwrap();
    let file = create(&fs, fs.root(), "file");
    let (number, generation) = (file.number(), file.generation());
    file.write_at(0, &[7; 300_000]).unwrap();
    fs.nodes().unlink(fs.root(), b"file").unwrap();
    assert!(matches!(fs.nodes().lookup(fs.root(), b"file"), Err(Error::NotFound(_))));
    file.write_at(300_000, b"more").unwrap();
    file.fsync_and_wait().unwrap();
    assert_eq!(contents(&file).len(), 300_004);
    assert_eq!(file.metadata().nlink, 0);
    // While it is open it is found by number, too; no other file has its number.
    let again = fs.nodes().open_handle(number, generation).unwrap();
    assert_eq!(fs.nodes().lookup_handle(number, generation).unwrap().size, 300_004);
    drop(file);
    assert_eq!(contents(&again).len(), 300_004);
    again.close().unwrap();
    for result in
        [fs.nodes().stat(number).map(drop), fs.nodes().open_handle(number, generation).map(drop)]
    {
        assert!(matches!(result, Err(Error::Stale { .. })), "{result:?}");
    }
    fs.sync_and_wait().unwrap();
    assert_eq!(fs.statfs().unwrap().inodes, before.inodes);
    close_and_check(fs, &device);
}

#[test]
fn handles_of_removed_files_are_stale_also_when_the_number_is_used_again() {
    let fs = fresh();
    let first = create(&fs, fs.root(), "first").metadata();
    fs.nodes().unlink(fs.root(), b"first").unwrap();
    let second = create(&fs, fs.root(), "second").metadata();
    assert_eq!(second.number, first.number, "the nearest free number is taken");
    let old = fs.nodes().lookup_handle(first.number, first.generation);
    assert!(matches!(old, Err(Error::Stale { .. })), "{old:?}");
    assert_eq!(fs.nodes().lookup_handle(second.number, second.generation).unwrap(), second);
}

#[test]
fn numbers_that_are_no_files_are_stale() {
    let fs = fresh();
    for number in [0, 1, fs.root().0 + 60, 100_000, 1 << 40, u64::MAX] {
        let number = InodeNumber(number);
        let found = fs.nodes().stat(number);
        assert!(matches!(found, Err(Error::Stale { .. })), "{number}: {found:?}");
        assert!(matches!(fs.nodes().open(number), Err(Error::Stale { .. })));
        assert!(matches!(
            fs.nodes().mkdir(number, b"x", &NewFile::new(0)),
            Err(Error::Stale { .. })
        ));
        assert!(matches!(fs.nodes().unlink(number, b"x"), Err(Error::Stale { .. })));
        assert!(fs.nodes().get_xattr(number, b"user.x").is_err());
    }
    // None of that harmed it.
    create(&fs, fs.root(), "file");
}

#[test]
fn a_file_without_a_name_gets_one_or_goes() {
    let device = memory();
    let fs = open(&device);
    let inodes = fs.statfs().unwrap().inodes;
    let file = fs.nodes().tmpfile(fs.root(), &NewFile::new(0o600)).unwrap();
    assert_eq!(file.metadata().nlink, 0);
    file.write_at(0, b"made at leisure").unwrap();
    assert_eq!(fs.nodes().link_file(&file, fs.root(), b"whole").unwrap().nlink, 1);
    assert_eq!(fs.read("/whole").unwrap(), b"made at leisure");
    drop(fs.nodes().tmpfile(fs.root(), &NewFile::new(0o600)).unwrap());
    assert_eq!(fs.statfs().unwrap().inodes, inodes + 1);
    let other = fresh();
    assert!(matches!(
        other.nodes().link_file(&file, other.root(), b"x"),
        Err(Error::CrossDevice(_))
    ));
    drop(file);
    close_and_check(fs, &device);
}

#[test]
fn a_directory_removed_while_open_takes_no_names() {
    let fs = fresh();
    let directory = fs.nodes().mkdir(fs.root(), b"directory", &NewFile::new(0o755)).unwrap();
    let open = fs.nodes().open(directory.number).unwrap();
    fs.nodes().rmdir(fs.root(), b"directory").unwrap();
    assert_eq!(open.metadata().nlink, 0);
    let made = fs.nodes().mkdir(directory.number, b"x", &NewFile::new(0o755));
    assert!(matches!(made, Err(Error::NotFound(_))), "{made:?}");
    let mut names = 0;
    fs.nodes()
        .readdir(directory.number, 0, |_| {
            names += 1;
            true
        })
        .unwrap();
    assert!(names <= 2);
}

#[test]
fn after_a_close_there_is_reading() {
    let device = memory();
    let fs = open(&device);
    let file = create(&fs, fs.root(), "file");
    file.write_at(0, b"bytes").unwrap();
    fs.close().unwrap();
    assert_eq!(contents(&file), b"bytes");
    assert!(file.write_at(0, b"x").is_err());
    assert!(fs.nodes().mkdir(fs.root(), b"x", &NewFile::new(0)).is_err());
    drop(file);
    drop(fs);
    assert_eq!(open(&device).read("/file").unwrap(), b"bytes");
}
