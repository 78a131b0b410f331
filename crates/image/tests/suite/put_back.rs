//! Removed files put back where they were, with the power cut at every write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::testing::recorder::{Recorder, Unflushed};
use undercroft_block::{BlockDevice, FileDevice, MemoryDevice, Sector, read_buffer};
use undercroft_fs::{FileSystem, NewFile};
use undercroft_image::{PutBack, PutBackSummary};
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, kernel, rounds};
use undercroft_recover::{Contents, Disk, FoundFile, Removed, State};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::Volume;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

const SIZE: u64 = 320 << 20;

/// The time at which files are put back.
const NOW: Timestamp = Timestamp { seconds: 1_800_000_000, nanoseconds: 7 };

/// Contents by path.
type Files = BTreeMap<String, Vec<u8>>;

fn live(device: &Arc<dyn BlockDevice>) -> FileSystem {
    let volume = Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap();
    FileSystem::from_volume(Arc::new(volume))
}

/// Writes a file in pieces of a block that lie apart.
fn write(fs: &FileSystem, path: &str, pieces: u64, files: &mut Files) {
    let file = fs.create_file(path, &NewFile::new(0o644)).unwrap();
    let mut bytes = vec![0; pieces as usize * 8192];
    for piece in 0..pieces as usize {
        let byte = (path.len() + piece) as u8 | 1;
        bytes[piece * 8192..piece * 8192 + 4096].fill(byte);
        file.write_at(piece as u64 * 8192, &bytes[piece * 8192..piece * 8192 + 4096]).unwrap();
    }
    bytes.truncate(bytes.len().saturating_sub(4196));
    file.set_len(bytes.len() as u64).unwrap();
    file.close().unwrap();
    files.insert(path.to_owned(), bytes);
}

/// A volume with files that stay, and the files that were removed.
fn volume(many_pieces: u64) -> (Arc<dyn BlockDevice>, Files) {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(64))).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    mkfs::finish(&mkfs::begin(&device, plan, &root).unwrap(), true).unwrap();
    let (mut gone, mut stays) = (Files::new(), Files::new());
    let fs = live(&device);
    fs.create_dir_all("home/ann/deep").unwrap();
    let mut random = Random::new(64);
    for number in 0..30 {
        let directory = ["home", "home/ann", "home/ann/deep"][number % 3];
        write(&fs, &format!("{directory}/gone-{number}"), random.below(12), &mut gone);
        write(&fs, &format!("home/stays-{number}"), 1, &mut stays);
    }
    write(&fs, "home/ann/large", many_pieces, &mut gone);
    fs.symlink("gone-0", "home/ann/link").unwrap();
    fs.close().unwrap();
    let fs = live(&device);
    fs.remove_dir_all("home/ann").unwrap();
    for path in gone.keys().filter(|path| path.starts_with("home/gone")) {
        fs.remove_file(path).unwrap();
    }
    fs.close().unwrap();
    (device, gone)
}

fn find(device: &Arc<dyn BlockDevice>) -> (Disk, Arc<Removed>) {
    // The journal is replayed in memory.
    let present = Volume::open(Arc::clone(device)).unwrap();
    let disk = Disk::replayed(Arc::clone(device), Arc::clone(present.device())).unwrap();
    let removed = Removed::find(&disk, &mut |_, _, _| {}).unwrap();
    (disk, Arc::new(removed))
}

fn put_back(device: &Arc<dyn BlockDevice>) -> PutBackSummary {
    let (disk, removed) = find(device);
    let fs = live(device);
    let files = PutBack::new(fs.volume(), (&disk, &removed.files), NOW, |_| true).unwrap();
    let summary = files.run(&mut |_| {}).unwrap();
    fs.close().unwrap();
    summary
}

/// The bytes of a removed file.
fn contents(disk: &Disk, file: &FoundFile) -> Vec<u8> {
    let mut bytes = vec![0; file.size as usize];
    let mut contents = Contents::new(disk, file);
    while let Some(piece) = contents.next_piece().unwrap() {
        let start = piece.offset as usize;
        bytes[start..start + piece.bytes().len()].copy_from_slice(piece.bytes());
    }
    bytes
}

/// Fails unless each file is back, or is found whole under its path; returns how many are back.
fn nothing_is_lost(device: &Arc<dyn BlockDevice>, gone: &Files, what: &str) -> usize {
    let volume = Volume::open(Arc::clone(device));
    let volume = volume.unwrap_or_else(|error| panic!("{what}: {error}"));
    let fs = FileSystem::from_volume(Arc::new(volume));
    let (disk, removed) = find(device);
    let mut back = 0;
    for (path, bytes) in gone {
        if fs.exists(path).unwrap() {
            assert!(fs.read(path).unwrap() == *bytes, "{what}: {path} is back with other content");
            back += 1;
            continue;
        }
        let is_it = |file: &&FoundFile| {
            let mut paths = file.paths.iter().filter(|path| path.is_complete);
            file.state == State::Whole && paths.any(|own| own.names.join(&b'/') == path.as_bytes())
        };
        let found: Vec<_> = removed.files.iter().filter(is_it).collect();
        let is_whole = found.iter().any(|file| contents(&disk, file) == *bytes);
        assert!(is_whole, "{what}: {path} is lost, of {} found", found.len());
    }
    back
}

fn save(device: &Arc<dyn BlockDevice>, image: &Path) {
    let bytes = read_buffer(device.as_ref(), Sector(0), SIZE as usize).unwrap();
    std::fs::write(image, &bytes[..]).unwrap();
}

#[test]
fn files_come_back_in_their_blocks_wherever_the_power_is_cut() {
    let (device, gone) = volume(40);
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let recorded: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
    let summary = put_back(&recorded);
    assert_eq!((summary.failed, summary.there), (0, 0));
    assert_eq!(nothing_is_lost(&recorded, &gone, "at the end"), gone.len());
    let mut recording = recorder.recording().unwrap();
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image");
    let (mut cuts, mut all_back) = (0, 0);
    while recording.step().is_some() {
        for unflushed in [
            Unflushed::Dropped,
            Unflushed::Kept,
            Unflushed::Torn { seed: recording.position() as u64 },
        ] {
            let what = format!("event {}, {unflushed:?}", recording.position());
            let disk = recording.disk(unflushed);
            cuts += 1;
            if cuts % rounds(5, 1) == 0 {
                all_back += usize::from(nothing_is_lost(&disk, &gone, &what) == gone.len());
            }
            if cuts % rounds(60, 10) == 0 {
                save(&disk, &image);
                let device: Arc<dyn BlockDevice> =
                    Arc::new(FileDevice::open(&image, false).unwrap());
                let again = put_back(&device);
                assert_eq!(again.failed, 0, "{what}");
                assert_eq!(nothing_is_lost(&device, &gone, &what), gone.len(), "{what}");
                drop(device);
                judged::sound(&image, &what);
            }
        }
    }
    assert!(cuts > 30 && all_back > 0, "{cuts} {all_back}");
}

/// A file of more pieces than one transaction takes, and others beside it.
#[test]
fn a_file_in_thousands_of_pieces_comes_back() {
    let (device, gone) = volume(3000);
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image");
    let summary = put_back(&device);
    assert_eq!((summary.failed, summary.files), (0, gone.len() as u64), "{summary:?}");
    assert_eq!(nothing_is_lost(&device, &gone, "at the end"), gone.len());
    // Once more: all of it is back.
    let again = put_back(&device);
    assert_eq!((again.files, again.others, again.failed), (0, 0, 0), "{again:?}");
    save(&device, &image);
    judged::sound(&image, "put back");
    if !kernel::available_or_report() {
        return;
    }
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    for (path, bytes) in &gone {
        assert!(std::fs::read(mount.join(path)).unwrap() == *bytes, "{path}");
    }
    assert_eq!(std::fs::read_link(mount.join("home/ann/link")).unwrap().to_str(), Some("gone-0"));
    // The kernel takes space of its own beside them.
    std::fs::write(mount.join("new"), vec![1; 4 << 20]).unwrap();
    mount.unmount().unwrap();
    judged::sound(&image, "used by a kernel");
}
