//! Directories that are damaged.

use crate::volumes::{memory, open};
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_fs::{Error, FileSystem, InodeNumber, OpenOptions};
use undercroft_xfs::Volume;
use undercroft_xfs::format::EntryType;
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap::ForkWriter;
use undercroft_xfs::internals::dir::{self, Entry};
use undercroft_xfs::mkfs;

/// Lets a name of a directory, which is there, stand for another inode, and nothing else.
fn redirect(device: &Arc<dyn BlockDevice>, at: InodeNumber, name: &[u8], to: InodeNumber) {
    let volume = Volume::open_bulk(Arc::clone(device)).unwrap();
    let mut transaction = volume.begin().unwrap();
    let mut directory = volume.lock_inode(at).unwrap();
    let entry = Entry { inode: to, ftype: EntryType::Directory };
    let mut fork = ForkWriter::new(&mut transaction, &mut directory, ForkKind::Data);
    dir::replace(&mut fork, name, entry).unwrap().unwrap();
    transaction.commit(&mut [&mut directory]).unwrap();
    drop(directory);
    mkfs::finish(&volume, true).unwrap();
}

/// Lets the way back of a directory lead to another one, and nothing else.
fn lead_back(device: &Arc<dyn BlockDevice>, directory: InodeNumber, to: InodeNumber) {
    let volume = Volume::open_bulk(Arc::clone(device)).unwrap();
    let mut transaction = volume.begin().unwrap();
    let mut directory = volume.lock_inode(directory).unwrap();
    let mut fork = ForkWriter::new(&mut transaction, &mut directory, ForkKind::Data);
    dir::set_parent(&mut fork, to).unwrap();
    transaction.commit(&mut [&mut directory]).unwrap();
    drop(directory);
    mkfs::finish(&volume, true).unwrap();
}

/// A volume on which `/a/b/c` leads to the inode of `to`, which is damage.
fn circle(to: &str) -> (Arc<dyn BlockDevice>, InodeNumber) {
    let device = memory();
    let fs = open(&device);
    fs.create_dir_all("/a/b/c").unwrap();
    fs.create_dir_all("/z").unwrap();
    fs.write("/z/file", "kept").unwrap();
    let [at, to] = ["/a/b", to].map(|path| fs.metadata(path).unwrap().number);
    fs.close().unwrap();
    redirect(&device, at, b"c", to);
    (device, to)
}

#[test]
fn a_walk_over_a_circle_ends_and_names_both_ends() {
    for to in ["/a", "/a/b", "/"] {
        let (device, number) = circle(to);
        let fs = FileSystem::open(device, &OpenOptions::read_only()).unwrap();
        let (found, errors): (Vec<_>, Vec<_>) =
            fs.walk("/").unwrap().take(100).partition(Result::is_ok);
        // The root, a, b; and z with its file, behind the damage.
        assert_eq!(found.len(), 5, "{found:?}");
        let [Err(error)] = &errors[..] else { panic!("{errors:?}") };
        let Error::Inode { inode, what } = error.error() else { panic!("{error:?}") };
        assert_eq!(*inode, number);
        assert!(what.contains(&format!("it is {to}, too")), "{error}");
        assert!(error.to_string().starts_with("/a/b/c: "), "{error}");
    }
}

#[test]
fn a_directory_with_two_names_is_entered_once() {
    let (device, number) = circle("/z");
    let fs = FileSystem::open(device, &OpenOptions::read_only()).unwrap();
    let (found, errors): (Vec<_>, Vec<_>) = fs.walk("/").unwrap().partition(Result::is_ok);
    assert_eq!((found.len(), errors.len()), (5, 1));
    let Err(error) = &errors[0] else { panic!("an error") };
    assert!(matches!(error.error(), Error::Inode { inode, .. } if *inode == number), "{error}");
}

#[test]
fn paths_through_a_circle_end_where_they_say() {
    let (device, _) = circle("/a");
    let fs = FileSystem::open(device, &OpenOptions::read_only()).unwrap();
    assert!(fs.exists("/a/b/c/b/c/b").unwrap());
    assert!(!fs.exists("/a/b/c/b/c/x").unwrap());
}

/// A tree whose top says that it is elsewhere: the way back from below would lead out of it.
#[test]
fn a_top_that_says_it_is_elsewhere_is_not_removed() {
    for says in ["/z", "/z/deep", "/a", "/a/b"] {
        let device = memory();
        let fs = open(&device);
        fs.create_dir_all("/a/b").unwrap();
        fs.create_dir_all("/z/deep").unwrap();
        for path in ["/a/file", "/a/b/file", "/z/file", "/z/deep/file"] {
            fs.write(path, "kept").unwrap();
        }
        let [root, top, elsewhere] =
            ["/", "/a", says].map(|path| fs.metadata(path).unwrap().number);
        fs.close().unwrap();
        lead_back(&device, top, elsewhere);
        let fs = open(&device);
        let error = fs.remove_dir_all("/a").unwrap_err();
        let Error::Inode { inode, what } = error.error() else { panic!("{error:?}") };
        assert_eq!(*inode, top);
        for number in [root, elsewhere] {
            let named = what.split([' ', ',']).any(|word| word == number.to_string());
            assert!(named, "{says}: {error}");
        }
        assert!(error.to_string().starts_with("/a: "), "{error}");
        for path in ["/a/file", "/a/b/file", "/z/file", "/z/deep/file"] {
            assert_eq!(fs.read(path).unwrap(), b"kept", "{says}: {path}");
        }
    }
}

#[test]
fn what_lies_outside_a_tree_is_not_removed_with_it() {
    for to in ["/z", "/a"] {
        let (device, _) = circle(to);
        let fs = open(&device);
        let error = fs.remove_dir_all("/a").unwrap_err();
        assert!(matches!(error.error(), Error::Inode { .. }), "{error}");
        assert_eq!(fs.read("/z/file").unwrap(), b"kept");
    }
}
