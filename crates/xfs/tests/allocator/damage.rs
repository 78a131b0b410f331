//! Free-space trees that disagree, overlap or loop: the allocator finds and names it, the volume
//! refuses all further changes, and nothing on the device is overwritten.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::image;
use undercroft_judges::random::Random;
use undercroft_testkit::xfs::allocations::History;
use undercroft_xfs::format::{RmapOwner, checksum};
use undercroft_xfs::internals::alloc::{self, Mode, Request};
use undercroft_xfs::internals::experiments::Variant;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::units::{AgBlock, AgNumber};
use undercroft_xfs::{Error, Volume};
use uuid::Uuid;

const BLOCK: usize = 4096;
/// Places in a block of a free-space tree.
const LEFT: usize = 8;
const RIGHT: usize = 12;
const CHECKSUM: usize = 52;
const RECORDS: usize = 56;
/// Pointers of a node follow its 336 keys.
const POINTERS: usize = RECORDS + 336 * 8;

/// A tree of group 0 of an image, with two levels.
struct Tree {
    file: fs::File,
    root: u32,
}

impl Tree {
    fn open(image: &Path, by_size: bool) -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
        let volume = Volume::open_bulk(device).unwrap();
        let mut trans = volume.begin().unwrap();
        let root = trans.with_group(AgNumber(0), true, |_, group| {
            let root = if by_size { group.agf.cntbt } else { group.agf.bnobt };
            assert_eq!(root.levels, 2);
            Ok(root.block.0)
        });
        let file = fs::OpenOptions::new().read(true).write(true).open(image).unwrap();
        Self { file, root: root.unwrap().unwrap() }
    }

    fn read(&self, block: u32) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        self.file.read_exact_at(&mut bytes, u64::from(block) * BLOCK as u64).unwrap();
        bytes
    }

    /// Overwrites a number in a block and repairs the checksum.
    fn put(&self, block: u32, offset: usize, value: u32) {
        let mut bytes = self.read(block);
        bytes[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
        checksum::stamp(&mut bytes, CHECKSUM);
        self.file.write_all_at(&bytes, u64::from(block) * BLOCK as u64).unwrap();
    }

    fn get(&self, block: u32, offset: usize) -> u32 {
        u32::from_be_bytes(self.read(block)[offset..offset + 4].try_into().unwrap())
    }

    /// The leaf of this number, from 0.
    fn leaf(&self, index: usize) -> u32 {
        self.get(self.root, POINTERS + 4 * index)
    }
}

/// Offset of the length of a record; its start is four bytes before.
fn length_of(record: usize) -> usize {
    RECORDS + 8 * record + 4
}

/// A damage, and whether it is one of the by-size tree.
type Lie = (&'static str, bool, fn(&Tree));

const LIES: &[Lie] = &[
    ("a shorter extent by block", false, |tree| {
        let (leaf, at) = (tree.leaf(0), length_of(7));
        tree.put(leaf, at, tree.get(leaf, at) - 1);
    }),
    ("another extent by size", true, |tree| {
        let (leaf, at) = (tree.leaf(0), length_of(7) - 4);
        tree.put(leaf, at, tree.get(leaf, at) + 1);
    }),
    ("an extent that overlaps the next", false, |tree| {
        let (leaf, at) = (tree.leaf(1), length_of(20));
        tree.put(leaf, at, 600);
    }),
    ("leaves in a circle by block", false, |tree| tree.put(tree.leaf(1), RIGHT, tree.leaf(0))),
    ("leaves in a circle by size", true, |tree| tree.put(tree.leaf(1), RIGHT, tree.leaf(0))),
    ("a leaf that is its own neighbour", false, |tree| {
        tree.put(tree.leaf(1), LEFT, tree.leaf(1));
    }),
    ("a node that is its own child", false, |tree| tree.put(tree.root, POINTERS + 4, tree.root)),
    ("one leaf under two keys", true, |tree| tree.put(tree.root, POINTERS + 4, tree.leaf(0))),
    ("an extent in the header", false, |tree| tree.put(tree.leaf(0), length_of(0) - 4, 0)),
];

/// Allocates all over group 0 until something is wrong.
fn use_up(volume: &Volume) -> Option<Error> {
    let (mut random, mut refused) = (Random::new(1), 0);
    while refused < 20 {
        let near = AgBlock(random.below(volume.geometry().ag_blocks.into()) as u32);
        let len = 1 + random.below(5) as u32;
        let target = volume.geometry().fs_block(AgNumber(0), near);
        let request = Request { min_len: 1, ..Request::metadata(target, len, RmapOwner::COW) };
        let mut trans = volume.begin().unwrap();
        let found = trans.with_group(AgNumber(0), true, |trans, group| {
            alloc::allocate_in_group(trans, group, &request, Mode::Near(near))
        });
        match found {
            Ok(Some(Some(_))) => refused = 0,
            Ok(_) => refused += 1,
            Err(error) => return Some(error),
        }
        trans.commit(&mut []).unwrap();
    }
    None
}

#[test]
fn damaged_trees_are_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (sound, damaged) = (directory.path().join("sound"), directory.path().join("damaged"));
    let options =
        MkfsOptions { ag_count: Some(2), ..MkfsOptions::new(128 << 20, Uuid::from_u128(3)) };
    let mut history = History::start(&sound, &options, |_| {}, 1);
    history.scatter();
    history.finish();
    for &(name, by_size, lie) in LIES {
        for variant in Variant::ALL {
            image::copy(&sound, &damaged).unwrap();
            lie(&Tree::open(&damaged, by_size));
            // A device that must not be written: an attempt would end in another error.
            let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&damaged, true).unwrap());
            let mut volume = Volume::open_bulk(device).unwrap();
            volume.set_near_search(variant.search());
            let error = use_up(&volume).unwrap_or_else(|| panic!("{name}, {variant}: not found"));
            assert!(error.is_damage(), "{name}, {variant}: {error}");
            let text = error.to_string();
            assert!(text.contains("bnobt") || text.contains("cntbt"), "{name}, {variant}: {text}");
            let Err(Error::Poisoned(reason)) = volume.begin().map(drop) else {
                panic!("{name}, {variant}: it can be changed")
            };
            assert!(reason.contains("in allocation group") && reason.contains(&text), "{reason}");
            assert!(matches!(mkfs::finish(&volume, false), Err(Error::Poisoned(_))));
        }
    }
}
