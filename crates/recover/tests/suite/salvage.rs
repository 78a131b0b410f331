//! What salvage brings back from damaged volumes, held against what was there.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use undercroft_block::stack::Gaps;
use undercroft_block::{BlockDevice, FileDevice, Sector};
use undercroft_judges::random::Random;
use undercroft_judges::{Xfsprogs, kernel};
use undercroft_recover::{Contents, Disk, FoundFile, Salvaged, Scan, State};
use undercroft_xfs_format::FileType;

use crate::tree::{BYTES, Tree};

fn scan(image: &Path) -> (Arc<dyn BlockDevice>, Scan) {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    let all = std::iter::once(0..device.capacity().0).collect::<Vec<_>>();
    let scan = Scan::read(&device, &all, &mut |_, _, _| {});
    (device, scan)
}

/// The files of the volume of which most is there.
fn salvage(image: &Path) -> (Disk, Salvaged) {
    let (device, scan) = scan(image);
    Salvaged::find(&device, &scan, &scan.volumes[0], &mut |_, _, _| {}).unwrap()
}

fn digest(disk: &Disk, file: &FoundFile) -> [u8; 32] {
    let mut bytes = vec![0; file.size as usize];
    let mut contents = Contents::new(disk, file);
    while let Some(piece) = contents.next_piece().unwrap() {
        let start = piece.offset as usize;
        bytes[start..start + piece.bytes().len()].copy_from_slice(piece.bytes());
    }
    Sha256::digest(&bytes).into()
}

fn paths(file: &FoundFile) -> impl Iterator<Item = String> {
    let complete = file.paths.iter().filter(|path| path.is_complete);
    complete.map(|path| String::from_utf8(path.names.join(&b'/')).unwrap())
}

/// Damages a tree and judges what comes back: the right content below the right path for all that can
/// be put together, but for one of a hundred; and nothing is called whole that is not.
fn judge(tree: &mut Tree, what: &str, hurt: impl FnOnce(&Path, &mut Random)) {
    let possible = tree.damage(hurt);
    let with_data = tree.with_data();
    let (disk, salvaged) = salvage(&tree.image);
    let mut found: BTreeMap<String, &FoundFile> = BTreeMap::new();
    for file in salvaged.files.iter().filter(|file| file.kind == Some(FileType::Regular)) {
        for path in paths(file) {
            assert!(found.insert(path.clone(), file).is_none(), "{what}: {path} was found twice");
        }
    }
    let is_right = |path: &String| {
        let file = found.get(path);
        file.is_some_and(|file| {
            file.state == State::Whole && digest(&disk, file) == tree.files[path].digest
        })
    };
    let missing: Vec<_> = possible.iter().filter(|path| !is_right(path)).collect();
    let right = tree.files.keys().filter(|path| is_right(path)).count();
    eprintln!("{what}: {right} of {} right, {} possible", tree.files.len(), possible.len());
    assert!(
        missing.len() * 100 <= possible.len(),
        "{what}: {} of {} are missing, {:?} {:#?} {:#?}",
        missing.len(),
        possible.len(),
        missing[0],
        found.get(missing[0]),
        salvaged.report
    );
    // Data have no checksums: of what was lost silently nobody can tell.
    for (path, file) in found.iter().filter(|(path, _)| with_data.contains(*path)) {
        if file.state == State::Whole {
            let same = digest(&disk, file) == tree.files[path].digest;
            assert!(same, "{what}: {path} is called whole and is not: {file:#?}");
        }
    }
}

fn zero(image: &Path, at: u64, len: usize) {
    let file = OpenOptions::new().write(true).open(image).unwrap();
    file.write_all_at(&vec![0; len], at).unwrap();
}

/// The damages of the reference.
fn all_damages(tree: &mut Tree, options: &[&str]) {
    let name = |what: &str| format!("{options:?}, {what}");
    let (root, group) = (tree.root(), tree.group());
    judge(tree, &name("no damage"), |_, _| {});
    judge(tree, &name("root inodes"), |image, _| zero(image, root, 16 << 10));
    judge(tree, &name("first MiB"), |image, _| zero(image, 0, 1 << 20));
    judge(tree, &name("middle"), |image, _| zero(image, BYTES / 2, 16 << 20));
    judge(tree, &name("a group's headers"), |image, _| zero(image, group, 64 << 10));
    judge(tree, &name("all groups' headers"), |image, _| {
        for ag in 0..BYTES.div_ceil(group) {
            zero(image, ag * group, 2048);
        }
    });
    judge(tree, &name("mkfs"), |image, _| {
        let newest = Xfsprogs::newest().unwrap();
        let mut mkfs = Command::new(newest.tool("mkfs.xfs").unwrap());
        mkfs.args(["-q", "-f", "-K", "--unsupported"]).args(options).arg(image);
        assert!(mkfs.status().unwrap().success());
    });
    judge(tree, &name("cut to 70 %"), |image, _| {
        let file = OpenOptions::new().write(true).open(image).unwrap();
        file.set_len(BYTES / 10 * 7 / 4096 * 4096).unwrap();
    });
    judge(tree, &name("1 % of blocks"), |image, random| {
        for _ in 0..BYTES / 4096 / 100 {
            zero(image, random.below(BYTES / 4096) * 4096, 4096);
        }
    });
    judge(tree, &name("somewhere on a disk"), |image, _| on_a_disk(image, 1 << 20));
}

#[test]
fn damaged_volumes_come_back() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(home.path(), 1, &[]);
    all_damages(&mut tree, &[]);
}

#[test]
fn damaged_volumes_without_owners_and_parents_come_back() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let options = ["-m", "rmapbt=0,reflink=0", "-n", "parent=0"];
    let mut tree = Tree::new(home.path(), 2, &options);
    all_damages(&mut tree, &options);
}

#[test]
fn damaged_volumes_with_small_blocks_come_back() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let options = ["-b", "size=1024"];
    let mut tree = Tree::new(home.path(), 3, &options);
    all_damages(&mut tree, &options);
}

/// Pieces of version 4 are known by their place: with a copy of the superblock, and the tree of inodes or what
/// looks like one.
#[test]
fn damaged_volumes_of_version_4_come_back() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(home.path(), 4, &["-m", "crc=0"]);
    let name = |what: &str| format!("version 4, {what}");
    let group = tree.group();
    let headers = |image: &Path, offset: u64| {
        (0..BYTES.div_ceil(group)).for_each(|ag| zero(image, ag * group + offset, 512));
    };
    judge(&mut tree, &name("first superblock"), |image, _| zero(image, 0, 512));
    judge(&mut tree, &name("headers of inodes"), |image, _| headers(image, 1024));
    judge(&mut tree, &name("1 % of blocks"), |image, random| {
        for _ in 0..BYTES / 4096 / 100 {
            zero(image, random.below(BYTES / 4096) * 4096, 4096);
        }
    });
    // Lies, of which nothing else can tell.
    for seed in 0..3 {
        tree.damage(|image, random| lie(image, seed, random));
        let (disk, salvaged) = salvage(&tree.image);
        for file in salvaged.files.iter() {
            let mut contents = Contents::new(&disk, file);
            (0..64).take_while(|_| contents.next_piece().unwrap().is_some()).for_each(drop);
        }
    }
    // Without any copy of the superblock nothing says where its blocks belong.
    tree.damage(|image, _| headers(image, 0));
    let (_, scan) = scan(&tree.image);
    assert!(scan.volumes.is_empty() && scan.unmarked > 100, "{}", scan.unmarked);

    let options = ["-m", "crc=0", "-b", "size=1024", "-n", "ftype=0", "-i", "attr=1"];
    let mut tree = Tree::new(home.path(), 5, &options);
    judge(&mut tree, &name("small blocks, on a disk"), |image, _| on_a_disk(image, 512));
    let options = ["-m", "crc=0", "-i", "size=2048", "-n", "size=16384"];
    let mut tree = Tree::new(home.path(), 6, &options);
    let group = tree.group();
    judge(&mut tree, &name("long inodes, a group's headers"), |image, _| {
        zero(image, group, 64 << 10);
    });
}

/// Changes words in inodes and blocks of directories, but for the first bytes of each sector.
fn lie(image: &Path, seed: u64, random: &mut Random) {
    let mut bytes = fs::read(image).unwrap();
    let is_metadata = |sector: &[u8]| {
        [b"IN".as_slice(), b"XD2B", b"XD2D", b"BMAP", b"IABT"]
            .iter()
            .any(|it| sector.starts_with(it))
    };
    let starts =
        (0..bytes.len()).step_by(512).filter(|at| is_metadata(&bytes[*at..])).collect::<Vec<_>>();
    for at in starts {
        if random.below(4) != seed {
            continue;
        }
        let place = at + 4 + random.below(500) as usize;
        let word = random.below(u64::MAX).to_be_bytes();
        let len = [1, 4, 8][random.below(3) as usize];
        bytes[place..place + len].copy_from_slice(&word[..len]);
    }
    fs::write(image, bytes).unwrap();
}

/// The volume, without its first bytes, at the end of a disk.
fn on_a_disk(image: &Path, lost: usize) {
    let bytes = fs::read(image).unwrap();
    let mut disk = vec![0xa5; 1_234_567 / 512 * 512];
    disk.extend_from_slice(&bytes);
    disk[1_234_567 / 512 * 512..][..lost].fill(0);
    fs::write(image, disk).unwrap();
}

/// A disk with bad sectors: what cannot be read is told, and no file with such sectors is called whole.
#[test]
fn what_cannot_be_read_is_lost_and_the_rest_is_not() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = Tree::new(home.path(), 9, &[]);
    let disk: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&tree.image, true).unwrap());
    let end = disk.capacity().0;
    let gaps = (0..end).step_by(1000).map(|start| Sector(start + 3)..Sector(start + 5)).collect();
    let device: Arc<dyn BlockDevice> = Arc::new(Gaps::new(disk, gaps));
    let all = std::iter::once(0..end).collect::<Vec<_>>();
    let scan = Scan::read(&device, &all, &mut |_, _, _| {});
    let found = Salvaged::find(&device, &scan, &scan.volumes[0], &mut |_, _, _| {});
    let (disk, salvaged) = found.unwrap();
    let report = &salvaged.report;
    assert!(report.unreadable >= end / 500 && !report.is_whole(), "{report:?}");
    assert!(report.partial > 0 && report.whole > tree.files.len() as u64 / 2, "{report:?}");
    for file in salvaged.files.iter().filter(|file| file.kind == Some(FileType::Regular)) {
        let digest = digest(&disk, file);
        if file.state == State::Whole {
            for path in paths(file) {
                assert_eq!(digest, tree.files[&path].digest, "{path} is not what was there");
            }
        }
    }
}
