//! Volumes whose free space was damaged with `xfs_db`, which repairs checksums: files are written
//! through the journal until the damage is met. It is named with its place, the volume refuses all
//! further changes, and nothing but the journal was written.

use rustix::fs::{SeekFrom, seek};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::{Xfsprogs, image};
use undercroft_xfs::format::{FileType, RmapOwner, Timestamp};
use undercroft_xfs::internals::alloc::{self, Mode, Request};
use undercroft_xfs::internals::experiments::Variant;
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::{AgBlock, AgNumber, FsBlock, InodeNumber};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};

const BLOCK: usize = 1024;
const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
/// Blocks of the hole that is damaged; all others are shorter or much longer.
const HOLE: usize = 40;

fn open(image: &Path, variant: Variant) -> Arc<Volume> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    let mut volume = Volume::open_live(device, &LiveOptions::default()).unwrap();
    volume.set_near_search(variant.search());
    Arc::new(volume)
}

fn create(volume: &Arc<Volume>, name: &str) -> OpenFile {
    let new = NewInode::new(FileType::Regular, 0o644);
    ops::make_open(volume, volume.geometry().root_inode, name.as_bytes(), &new).unwrap()
}

fn append(file: &OpenFile, blocks: usize) -> Result<(), Error> {
    file.write(file.size(), &vec![7; blocks * BLOCK], NOW)?;
    file.fsync_and_wait()
}

/// A volume with holes in its first group.
struct Holes {
    /// The file in front of the hole.
    before: InodeNumber,
    /// Block of the hole.
    start: u32,
}

/// Writes files and removes every other one; trees of free space get two levels.
fn make_holes(image: &Path) -> Holes {
    let volume = open(image, Variant::Near);
    let mut place = None;
    for number in 0..400 {
        let file = create(&volume, &format!("file-{number}"));
        append(&file, if number == 301 { HOLE } else { 4 }).unwrap();
        if number == 300 {
            let maps = ops::extent_map(&volume, &file.inode().read()).unwrap();
            let end = maps[0].extent.start.0 + u64::from(maps[0].extent.len);
            place = Some((file.number(), end));
        }
    }
    let root = volume.geometry().root_inode;
    for number in (1..400).step_by(2) {
        let name = format!("file-{number}");
        ops::unlink(&volume, root, name.as_bytes(), NOW).unwrap();
    }
    let (before, start) = place.unwrap();
    let (group, start) = volume.geometry().split_block(FsBlock(start));
    assert_eq!(group, AgNumber(0));
    volume.close().unwrap();
    Holes { before, start: start.0 }
}

/// `xfs_db` on one tree of free space of one group.
struct Db<'a> {
    tools: &'a Xfsprogs,
    image: &'a Path,
    group: u32,
}

impl Db<'_> {
    fn run(&self, commands: &[String]) -> String {
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        self.tools.db_expert(self.image, &commands).unwrap()
    }

    fn number(&self, field: &str) -> u32 {
        let text = self.run(&[format!("agf {}", self.group), format!("print {field}")]);
        text.trim().rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Ways to the leaves of a tree.
    fn leaves(&self, tree: &str) -> Vec<Vec<String>> {
        let root = vec![format!("agf {}", self.group), format!("addr {tree}root")];
        if self.number(&format!("{tree}level")) == 1 {
            return vec![root];
        }
        let mut ask = root.clone();
        ask.push("print numrecs".to_owned());
        let text = self.run(&ask);
        let count: usize = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let child = |index| format!("addr ptrs[{index}]");
        (1..=count).map(|index| [root.clone(), vec![child(index)]].concat()).collect()
    }

    /// Way to the leaf with the free extent at `start`, number of its record, and its length.
    fn find(&self, tree: &str, start: u32) -> (Vec<String>, usize, u32) {
        for leaf in self.leaves(tree) {
            let text = self.run(&[leaf.clone(), vec!["print recs".to_owned()]].concat());
            for word in text.split_whitespace() {
                // As in `7:[1234,4]`.
                let Some((index, rest)) = word.split_once(":[") else { continue };
                let (at, len) = rest.trim_end_matches(']').split_once(',').unwrap();
                if at.parse() == Ok(start) {
                    return (leaf, index.parse().unwrap(), len.parse().unwrap());
                }
            }
        }
        panic!("no free extent at {start} in the {tree}bt");
    }

    /// Changes the record of the free extent at `start` in one tree.
    fn change(&self, tree: &str, start: u32, (new_start, new_len): (u32, u32)) {
        let (leaf, index, _) = self.find(tree, start);
        let writes = [
            format!("write recs[{index}].startblock {new_start}"),
            format!("write recs[{index}].blockcount {new_len}"),
        ];
        self.run(&[leaf, writes.to_vec()].concat());
    }

    /// Changes it in both trees, and the headers with it.
    fn change_all(&self, start: u32, new: (u32, u32)) {
        let (_, _, len) = self.find("bno", start);
        let (free, longest) = (self.number("freeblks"), self.number("longest"));
        self.change("bno", start, new);
        self.change("cnt", start, new);
        let mut header = vec![format!("agf {}", self.group)];
        header.push(format!("write freeblks {}", free - len + new.1));
        if longest == len {
            header.push(format!("write longest {}", new.1));
        }
        self.run(&header);
    }
}

/// What the device holds outside of the journal: all pieces that are not zeros, with their places.
fn contents(image: &Path) -> Vec<(u64, Vec<u8>)> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    let volume = Volume::open_unreplayed(device).unwrap();
    let geometry = volume.geometry();
    let log = geometry.sector(geometry.log_start).0 * 512;
    let log = log..log + u64::from(geometry.log_blocks) * BLOCK as u64;
    let file = fs::File::open(image).unwrap();
    let (mut pieces, mut at) = (Vec::new(), 0);
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(start)).unwrap();
        for offset in (start..at).step_by(BLOCK).filter(|offset| !log.contains(offset)) {
            let mut piece = vec![0; BLOCK];
            file.read_exact_at(&mut piece, offset).unwrap();
            if piece.iter().any(|byte| *byte != 0) {
                pieces.push((offset, piece));
            }
        }
    }
    pieces
}

/// A damage; whether only reverse mappings tell; the blocks of which one must be named.
type Lie = (&'static str, bool, fn(&Db<'_>, u32) -> Vec<u32>);

const LIES: &[Lie] = &[
    ("the trees disagree: another length by block", false, |db, start| {
        db.change("bno", start, (start, HOLE as u32 + 1));
        vec![start, start + HOLE as u32]
    }),
    ("the trees disagree: another place by size", false, |db, start| {
        db.change("cnt", start, (start + 1, HOLE as u32));
        vec![start, start + 1]
    }),
    ("free extents overlap each other", false, |db, start| {
        // Over the file behind the hole, into the next hole.
        db.change_all(start, (start, HOLE as u32 + 6));
        vec![start, start + HOLE as u32]
    }),
    ("a free extent overlaps a file", true, |db, start| {
        db.change_all(start, (start, HOLE as u32 + 1));
        vec![start + HOLE as u32]
    }),
    ("a node is its own child", false, |db, start| {
        let (leaf, _, _) = db.find("bno", start);
        let child = leaf.last().unwrap().replacen("addr", "write", 1);
        let root = db.number("bnoroot");
        let write = format!("{child} {root}");
        db.run(&[leaf[..leaf.len() - 1].to_vec(), vec![write]].concat());
        vec![root]
    }),
    ("a leaf is its own neighbour", false, |db, start| {
        let (leaf, _, _) = db.find("bno", start);
        let text = db.run(&[leaf.clone(), vec!["print bno".to_owned()]].concat());
        let sector: u32 = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let block = sector / (BLOCK / 512) as u32;
        let write = format!("write -d rightsib {block}");
        let said = db.run(&[leaf, vec![write]].concat());
        assert!(said.contains("rightsib = "), "{said}");
        vec![block]
    }),
];

#[test]
fn files_written_into_damaged_free_space() {
    let directory = tempfile::tempdir().unwrap();
    let [sound, lied, damaged] =
        ["sound", "lied", "damaged"].map(|name| directory.path().join(name));
    let tools = Xfsprogs::newest().unwrap();
    for reverse_mappings in ["rmapbt=1", "rmapbt=0"] {
        let arguments = ["-b", "size=1024", "-d", "agcount=2", "-m", reverse_mappings];
        tools.mkfs(&sound, 300 << 20, &arguments).unwrap();
        let holes = make_holes(&sound);
        for &(name, needs_owners, lie) in LIES {
            if needs_owners && reverse_mappings == "rmapbt=0" {
                continue;
            }
            image::copy(&sound, &lied).unwrap();
            let blocks = lie(&Db { tools: &tools, image: &lied, group: 0 }, holes.start);
            for variant in [Variant::Near, Variant::Near2018, Variant::Indexed] {
                let what = format!("{name}, {reverse_mappings}, {variant}");
                image::copy(&lied, &damaged).unwrap();
                let before = contents(&damaged);
                let volume = open(&damaged, variant);
                let file = OpenFile::open(&volume, holes.before).unwrap();
                let error = append(&file, HOLE).expect_err(&what);
                assert!(error.is_damage(), "{what}: {error}");
                assert_named(&error, &blocks, &what);
                assert!(matches!(volume.begin(), Err(Error::Poisoned(_))), "{what}");
                assert!(volume.close().is_err(), "{what}");
                drop((file, volume));
                assert!(before == contents(&damaged), "{what}: something was overwritten");
            }
        }
    }
}

/// The error names a tree, and one of these blocks of the first group.
fn assert_named(error: &Error, blocks: &[u32], what: &str) {
    let text = error.to_string();
    assert!(["bnobt", "cntbt"].iter().any(|tree| text.contains(tree)), "{what}: {text}");
    let named = blocks.iter().any(|block| {
        text.contains(&format!("block {block}:")) || text.contains(&format!("block {block},"))
    });
    // The index reads the whole tree and finds first what comes first.
    assert!(named || what.ends_with("indexed"), "{what}: {text}");
}

/// What a group itself stands on is known without reverse mappings, too.
#[test]
fn free_space_over_the_groups_own_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let tools = Xfsprogs::newest().unwrap();
    for reverse_mappings in ["rmapbt=1", "rmapbt=0"] {
        let arguments = ["-b", "size=1024", "-d", "agcount=2", "-m", reverse_mappings];
        for (group, place) in [(0, "root"), (0, "list"), (1, "journal")] {
            tools.mkfs(&image, 300 << 20, &arguments).unwrap();
            let db = Db { tools: &tools, image: &image, group };
            let volume = bulk(&image);
            let (mut start, mut len) = (0, 0);
            undercroft_xfs::internals::group_tree::free_extents::<
                undercroft_xfs::internals::btree::Bnobt,
            >(&volume, AgNumber(group), |free| {
                if len == 0 {
                    (start, len) = (free.start.0, free.len);
                }
            })
            .unwrap();
            drop(volume);
            let by = match place {
                "root" => start - db.number("bnoroot"),
                "list" => 1,
                _ => 5,
            };
            db.change_all(start, (start - by, len + by));
            let before = contents(&image);
            let volume = bulk(&image);
            let target = AgBlock(start - by);
            let request = Request::metadata(
                volume.geometry().fs_block(AgNumber(group), target),
                1,
                RmapOwner::COW,
            );
            let mut trans = volume.begin().unwrap();
            let found = trans.with_group(AgNumber(group), true, |trans, group| {
                alloc::allocate_in_group(trans, group, &request, Mode::Near(target))
            });
            let text = found.unwrap_err().to_string();
            drop(trans);
            let what = format!("{place}, {reverse_mappings}: {text}");
            assert!(
                text.contains("bnobt in allocation group") && text.contains("overlaps"),
                "{what}"
            );
            if reverse_mappings == "rmapbt=0" {
                assert_eq!(text.contains("the journal"), place == "journal", "{what}");
            }
            assert!(matches!(volume.begin(), Err(Error::Poisoned(_))), "{what}");
            drop(volume);
            assert!(before == contents(&image), "{what}: something was overwritten");
        }
    }
}

fn bulk(image: &Path) -> Volume {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    Volume::open_bulk(device).unwrap()
}
