//! Where data of files goes, against the running kernel: appends, sparse writes, extent size hints,
//! hints that a directory hands down. The kernel and this library do the same to two copies of a
//! volume; the files must be at the same blocks, with the same space ahead of them, and the same
//! must be left when they are closed.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::rounds::rounds;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{OpenFile, Volume};

const NAMES: [&str; 6] = ["plain", "other", "hint-64k", "hint-40k", "inherits/one", "inherits/two"];

/// Pieces of a file up to which it is written to.
const PIECES: usize = 8;

/// A piece of a file: place in it and on the device in sectors, length, whether it was written.
type Piece = (u64, u64, u64, bool);

/// A write of so many bytes at an offset of a file.
#[derive(Clone, Copy, Debug)]
struct Write {
    file: usize,
    offset: u64,
    len: usize,
}

fn xfs_io(path: &Path, command: &str) {
    let status = Command::new("xfs_io").args(["-c", command]).arg(path).status();
    assert!(status.unwrap().success(), "{command}");
}

/// Makes the files, empty; with `holes`, on free space of many pieces. Nothing of it depends on when
/// the kernel writes: a volume is the same each time.
fn prepare(image: &Path, holes: bool, seed: u64) {
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    let fillers = if holes { 0..3000 } else { 0..0 };
    let filler = |number: u32| mount.join(format!("filler-{number}"));
    let mut random = Random::new(seed);
    for number in fillers.clone() {
        let file = File::create_new(filler(number)).unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, (1 + random.below(24)) * 4096).unwrap();
    }
    let directory = mount.join("inherits");
    fs::create_dir(&directory).unwrap();
    xfs_io(&directory, "extsize 32768");
    for name in NAMES {
        File::create_new(mount.join(name)).unwrap();
    }
    xfs_io(&mount.join(NAMES[2]), "extsize 65536");
    xfs_io(&mount.join(NAMES[3]), "extsize 40960");
    fillers.step_by(2).for_each(|number| fs::remove_file(filler(number)).unwrap());
    mount.unmount().unwrap();
}

/// Appends, mostly, of one file and another.
fn writes(seed: u64, count: usize) -> Vec<Write> {
    let mut random = Random::new(seed);
    let mut sizes = [0; NAMES.len()];
    (0..count)
        .map(|_| {
            let file = random.below(NAMES.len() as u64) as usize;
            let len = 1 + random.magnitude(17);
            let offset = match random.below(8) {
                0 => random.below(sizes[file] + 300_000),
                _ => sizes[file],
            };
            sizes[file] = sizes[file].max(offset + len);
            Write { file, offset, len: len as usize }
        })
        .collect()
}

/// What the kernel says of a file; two looks must not change anything.
fn mapped(path: &Path) -> Vec<Piece> {
    let run = Command::new("xfs_io").args(["-r", "-c", "fiemap -v"]).arg(path).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let mut pieces = Vec::new();
    // A heading of two lines; then number, range in the file, range on the device, length, flags.
    for words in text.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        if words[2] == "hole" {
            continue;
        }
        let range = |word: &str| {
            let (first, last) = word.trim_matches(['[', ']', ':']).split_once("..").unwrap();
            (first.parse::<u64>().unwrap(), last.parse::<u64>().unwrap() + 1)
        };
        let ((from, to), (sector, _)) = (range(words[1]), range(words[2]));
        let flags = u64::from_str_radix(words[4].trim_start_matches("0x"), 16).unwrap();
        pieces.push((from, sector, to - from, flags & 0x800 == 0));
    }
    joined(pieces)
}

/// Pieces that continue each other as one.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        match all.last_mut() {
            Some(last)
                if (last.0 + last.2, last.1 + last.2, last.3) == (piece.0, piece.1, piece.3) =>
            {
                last.2 += piece.2;
            }
            _ => all.push(piece),
        }
    }
    all
}

/// The map of the file that was written, after each write; those of all files when they are closed.
type Maps = (Vec<Vec<Piece>>, Vec<Vec<Piece>>);

/// Does the writes, but none to a file of many pieces; returns those that were done.
///
/// A kernel maps new blocks as unwritten first, and may need a tree of mappings for that for a
/// moment. Files that never come near that take the same blocks everywhere.
fn by_the_kernel(image: &Path, writes: Vec<Write>) -> (Vec<Write>, Maps) {
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    let open = |name| OpenOptions::new().read(true).write(true).open(mount.join(name)).unwrap();
    let files = NAMES.map(open);
    let (mut steps, mut done, mut pieces) = (Vec::new(), Vec::new(), [0; NAMES.len()]);
    for write in writes {
        if pieces[write.file] > PIECES {
            continue;
        }
        files[write.file].write_all_at(&vec![5; write.len], write.offset).unwrap();
        files[write.file].sync_all().unwrap();
        let map = mapped(&mount.join(NAMES[write.file]));
        pieces[write.file] = map.len();
        steps.push(map);
        done.push(write);
    }
    drop(files);
    let closed = NAMES.map(|name| mapped(&mount.join(name)));
    mount.unmount().unwrap();
    (done, (steps, closed.to_vec()))
}

fn by_us(image: &Path, writes: &[Write]) -> Maps {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    let volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
    let find = |path: &str| {
        path.split('/').fold(volume.geometry().root_inode, |directory, name| {
            let directory = volume.inode(directory).unwrap();
            ops::lookup(&volume, &directory.read(), name.as_bytes()).unwrap().unwrap()
        })
    };
    let numbers = NAMES.map(find);
    let files = numbers.map(|number| OpenFile::open(&volume, number).unwrap());
    let now = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    let map = |number: &InodeNumber| {
        let (geometry, inode) = (volume.geometry(), volume.inode(*number).unwrap());
        let unit = geometry.block_size() as u64 / 512;
        let pieces = ops::extent_map(&volume, &inode.read()).unwrap().into_iter();
        joined(
            pieces
                .map(|piece| piece.extent)
                .map(|piece| {
                    let sector = geometry.sector(piece.start).0;
                    (piece.offset.0 * unit, sector, u64::from(piece.len) * unit, !piece.unwritten)
                })
                .collect(),
        )
    };
    let mut steps = Vec::new();
    for write in writes {
        let memory = Arc::new(vec![5; write.len]);
        files[write.file].write_shared(write.offset, &memory, 0..write.len, now).unwrap();
        files[write.file].fsync_and_wait().unwrap();
        steps.push(map(&numbers[write.file]));
    }
    files.into_iter().for_each(|file| file.close().unwrap());
    let closed = numbers.iter().map(map).collect();
    volume.close().unwrap();
    (steps, closed)
}

/// A volume of a seed, on which the kernel and this library do the same.
struct Case {
    arguments: &'static [&'static str],
    holes: bool,
    seed: u64,
}

impl Case {
    fn run(&self, tools: &Xfsprogs) {
        let Self { arguments, holes, seed } = *self;
        let directory = tempfile::tempdir().unwrap();
        let (image, copy) = (directory.path().join("kernel"), directory.path().join("ours"));
        tools.mkfs(&image, 1 << 30, arguments).unwrap();
        prepare(&image, holes, seed);
        image::copy(&image, &copy).unwrap();
        let (writes, kernel) = by_the_kernel(&image, writes(seed, 400));
        assert!(writes.len() > 60, "{} writes", writes.len());
        let ours = by_us(&copy, &writes);
        let case = format!("{arguments:?}, seed {seed}");
        for (number, write) in writes.iter().enumerate() {
            assert!(!kernel.0[number].is_empty());
            let name = NAMES[write.file];
            assert_eq!(kernel.0[number], ours.0[number], "{case}, {name}, {number}, {write:?}");
        }
        for (name, (kernel, ours)) in NAMES.iter().zip(kernel.1.iter().zip(&ours.1)) {
            assert_eq!(kernel, ours, "{case}, {name}, closed");
        }
        let ahead = |map: &Vec<Piece>| map.last().is_some_and(|last| !last.3);
        assert!(kernel.0.iter().any(ahead) && !kernel.1.iter().any(ahead));
        tools.repair_check(&copy).unwrap();
    }
}

#[test]
fn files_are_where_the_kernel_puts_them() {
    if !kernel::available_or_report() {
        return;
    }
    let tools = Xfsprogs::newest().unwrap();
    // On free space of many pieces no record of owners: a kernel's has more records for a moment,
    // as new blocks are unwritten first, and may take a block for them that this library leaves.
    let cases: [(&[&str], bool); 6] = [
        (&["-d", "agcount=2"], false),
        (&["-d", "agcount=2", "-m", "rmapbt=0"], true),
        (&["-d", "agcount=2", "-m", "rmapbt=0", "-b", "size=2048"], true),
        (&["-d", "agcount=2", "-m", "rmapbt=0", "-b", "size=1024"], true),
        (&["-d", "agcount=4,su=64k,sw=4"], false),
        (&["-d", "agcount=4,su=64k,sw=4", "-m", "rmapbt=0"], true),
    ];
    for seed in 0..rounds(12, 300) {
        let (arguments, holes) = cases[seed % cases.len()];
        Case { arguments, holes, seed: seed as u64 }.run(&tools);
    }
}
