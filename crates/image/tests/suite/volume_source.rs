//! A volume as a source delivers what a kernel's mount of it does as a directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_image::pack::{self, PackOptions};
use undercroft_image::unpack::VolumeSource;
use undercroft_judges::matrix::FORMATS;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Scratch, kernel, odd, rounds};
use undercroft_source::directory::DirectorySource;
use undercroft_source::{Data, DataRange, Entry, Kind, Options, Source, SourceError, SourceSpec};
use undercroft_xfs::Volume;

fn open(image: &Path) -> VolumeSource {
    let device = Arc::new(FileDevice::open(image, true).unwrap());
    VolumeSource::new(&Arc::new(Volume::open(device).unwrap()))
}

/// An entry without its data ranges, with the blocks of its contents.
#[derive(PartialEq, Eq)]
struct Delivered {
    entry: Entry,
    blocks: BTreeMap<u64, Vec<u8>>,
}

/// Contents are blocks that are not zeros: a range of data beside a hole is not said alike by
/// everything that holds files.
fn drain(source: &mut dyn Source) -> Vec<Delivered> {
    const BLOCK: u64 = 4096;
    let mut all = Vec::new();
    while let Some(mut entry) = source.next_entry().unwrap() {
        let mut found: Vec<DataRange> = Vec::new();
        let mut blocks = BTreeMap::new();
        while let Some(Data { offset, chunk }) = source.next_data().unwrap() {
            match found.last_mut() {
                Some(last) if last.end() == offset => last.length += chunk.len() as u64,
                _ => found.push(DataRange { offset, length: chunk.len() as u64 }),
            }
            for (at, byte) in (offset..).zip(chunk.as_slice()) {
                if *byte != 0 {
                    let block = blocks.entry(at / BLOCK).or_insert_with(|| vec![0; BLOCK as usize]);
                    block[(at % BLOCK) as usize] = *byte;
                }
            }
        }
        if let Kind::Regular { data: promised, .. } = &mut entry.kind {
            assert_eq!(*promised, found, "{}", entry.path);
            promised.clear();
        }
        all.push(Delivered { entry, blocks });
    }
    assert!(source.next_entry().unwrap().is_none(), "the end stays the end");
    all
}

/// Compares a volume with a kernel's mount of it.
fn compare(image: &Path, mount: &Path, name: &str) {
    let mut directory = drain(&mut DirectorySource::open(mount, &Options::default()).unwrap());
    for found in &mut directory {
        // Properties of the volume, not of the tree; and another form of ACLs, which come already.
        found.entry.xattrs.retain(|xattr| {
            !xattr.name.starts_with(b"trusted.xfs:") && !xattr.name.starts_with(b"trusted.SGI_ACL_")
        });
    }
    let volume = drain(&mut open(image));
    assert!(directory.len() > 1, "{name}");
    for (volume, directory) in volume.iter().zip(&directory) {
        assert_eq!(volume.entry, directory.entry, "{name}");
        assert!(volume.blocks == directory.blocks, "{name}: {}", volume.entry.path);
    }
    assert_eq!(volume.len(), directory.len(), "{name}");
}

/// Every sixth one in the check, all in a soak.
#[test]
fn formats_are_as_the_kernel_sees_them() {
    if !kernel::available_or_report() {
        return;
    }
    let formats = FORMATS.iter().filter(|format| format.mounts);
    for format in formats.step_by(rounds(6, 1)) {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        format.make_filled(&image).unwrap();
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        compare(&image, mount.path(), format.name);
    }
}

#[test]
fn odd_things_and_a_journal_that_is_not_replayed() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(512 << 20).unwrap();
    let left_out = odd::odd_tree(scratch.path()).unwrap();
    assert!(left_out.is_empty(), "{left_out:#?}");
    let (directory, image) = scratch.into_image().unwrap();
    let copy = directory.path().join("dirty");
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    compare(&image, mount.path(), "clean");
    fs::write(mount.join("later"), "written").unwrap();
    rustix::fs::fsync(File::open(mount.join("later")).unwrap()).unwrap();
    rustix::fs::fsync(File::open(mount.path()).unwrap()).unwrap();
    undercroft_judges::image::copy(&image, &copy).unwrap();
    mount.unmount().unwrap();
    let names: Vec<_> = drain(&mut open(&copy)).into_iter().map(|found| found.entry.path).collect();
    assert!(names.iter().any(|path| path.as_bytes() == b"later"), "{names:?}");
}

#[test]
fn a_scan_shows_the_same_entries_and_a_restart_delivers_them_again() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("tree");
    fs::create_dir_all(tree.join("a")).unwrap();
    fs::write(tree.join("a-b"), vec![1; 3_000_000]).unwrap();
    fs::hard_link(tree.join("a-b"), tree.join("a/z")).unwrap();
    for number in 0..1000 {
        fs::write(tree.join(format!("a/{number}")), number.to_string()).unwrap();
    }
    let sparse = File::create(tree.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    sparse.write_all_at(b"end", 1 << 39).unwrap();
    let image = scratch.path().join("image");
    pack::build(&PackOptions::new(SourceSpec::Directory(tree), image.clone()), &mut |_| {})
        .unwrap();

    let mut source = open(&image);
    assert!(matches!(source.restart(), Err(SourceError::NotScanned)));
    let mut scanned = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.clone())).unwrap();
    assert!(matches!(source.scan(&mut |_| ()), Err(SourceError::ScanTooLate)));
    let paths: Vec<_> = scanned.iter().map(|entry| entry.path.clone()).collect();
    let mut sorted = paths.clone();
    sorted.sort_by(|one, other| one.components().cmp(other.components()));
    assert_eq!(paths, sorted);
    assert_eq!(paths[1].as_bytes(), b"a", "names are compared, not whole paths");
    // Ends in the middle, with data left.
    for _ in 0..5 {
        source.next_entry().unwrap();
    }
    for _ in 0..2 {
        source.restart().unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = source.next_entry().unwrap() {
            entries.push(entry);
        }
        assert_eq!(entries, scanned);
    }
    let linked = scanned.iter().find(|entry| entry.path.as_bytes() == b"a-b").unwrap();
    assert!(matches!(&linked.kind, Kind::HardLink(first) if first.as_bytes() == b"a/z"));
}

#[test]
fn damage_is_an_error_that_names_the_path() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("tree");
    fs::create_dir_all(tree.join("outer/inner")).unwrap();
    let image = scratch.path().join("image");
    pack::build(&PackOptions::new(SourceSpec::Directory(tree), image.clone()), &mut |_| {})
        .unwrap();
    let device = Arc::new(FileDevice::open(&image, true).unwrap());
    let volume = Arc::new(Volume::open(device).unwrap());
    let outer = undercroft_fs::FileSystem::from_volume(volume).metadata("outer");
    let outer = outer.unwrap().number;
    let script = [format!("inode {outer}"), format!("write u3.sfdir3.list[0].inumber.i4 {outer}")];
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    undercroft_judges::Xfsprogs::newest().unwrap().db_expert(&image, &script).unwrap();
    let mut source = open(&image);
    let error = loop {
        match source.next_entry() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("damage was not noticed"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("/outer/inner leads back"), "{error}");
    assert!(source.next_entry().unwrap().is_none());
}
