//! What is found of removed files, held against what they were.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};
use undercroft_block::stack::Gaps;
use undercroft_block::{BlockDevice, FileDevice, Sector};
use undercroft_judges::kernel;
use undercroft_judges::rounds::rounds;
use undercroft_recover::{Contents, Disk, FoundFile, Removed, SizeFrom, State};
use undercroft_xfs_format::FileType;

use crate::history::{History, make_durable};

/// Volumes as mkfs makes them today, as it made them, and with other sizes.
const FORMATS: [&[&str]; 5] = [
    &[],
    &["-n", "parent=0"],
    &["-m", "rmapbt=0,reflink=0,finobt=0", "-i", "sparse=0,nrext64=0", "-n", "parent=0"],
    &["-b", "size=1024"],
    &["-n", "size=65536"],
];

fn find(history: &History) -> (Disk, Removed) {
    let disk = Disk::new(Arc::new(FileDevice::open(&history.image, true).unwrap())).unwrap();
    let removed = Removed::find(&disk, &mut |_, _, _| {}).unwrap();
    (disk, removed)
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

/// The paths of a file.
fn paths(file: &FoundFile) -> Vec<String> {
    let complete = file.paths.iter().filter(|path| path.is_complete);
    complete.map(|path| String::from_utf8(path.names.join(&b'/')).unwrap()).collect()
}

/// All that is known of a removed path.
fn about(history: &History, path: &str) -> Vec<FoundFile> {
    let (_, removed) = find(history);
    let own = removed.files.iter().filter(|file| paths(file).iter().any(|own| own == path));
    own.cloned().collect()
}

/// Fails if a file that is called whole is not what was there; returns the files that are whole, and
/// all that have a path.
fn judge(history: &History, what: &str) -> (BTreeMap<String, [u8; 32]>, usize) {
    let (disk, removed) = find(history);
    let (mut whole, mut named) = (BTreeMap::new(), 0);
    for file in removed.files.iter().filter(|file| file.kind == Some(FileType::Regular)) {
        let paths = paths(file);
        named += paths.iter().filter(|path| history.removed.contains(*path)).count();
        if !matches!(file.state, State::Whole | State::Shared) {
            continue;
        }
        let digest = digest(&disk, file);
        // A name may be lost where the inode does not say it; the content is one that was there.
        let is_known = !paths.is_empty() || !history.with_content(&digest).is_empty();
        assert!(is_known, "{what}: {} is called whole and was never there: {file:#?}", file.id);
        for path in paths {
            let known = history.contents.get(&path);
            assert!(
                known.is_some_and(|known| known.contains(&digest)),
                "{what}: {path} is called whole and is not what was there, but {:?}: {file:#?}",
                history.with_content(&digest)
            );
            whole.insert(path, digest);
        }
    }
    (whole, named)
}

#[test]
fn what_was_removed_last_comes_back_whole() {
    comes_back_whole(|history| {
        let mount = history.mount();
        history.remove(&mount, "old", 3);
        mount.unmount().unwrap();
    });
}

#[test]
fn what_our_engine_removed_last_comes_back_whole() {
    comes_back_whole(|history| history.remove_by_engine("old", 3));
}

fn comes_back_whole(remove: impl Fn(&mut History)) {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for (seed, options) in FORMATS.into_iter().enumerate() {
        let mut history = History::begin(home.path(), seed as u64, options);
        remove(&mut history);
        let (whole, named) = judge(&history, &format!("{options:?}"));
        assert!(!history.removed.is_empty());
        let missing: Vec<_> =
            history.removed.iter().filter(|path| !whole.contains_key(*path)).collect();
        // Trees that grew by the removal may have taken blocks of some of them.
        let most = history.removed.len() / 50;
        assert!(
            missing.len() <= most,
            "{options:?}: {missing:?}, {:#?}",
            about(&history, missing[0])
        );
        assert_eq!(named, history.removed.len(), "{options:?}: a file was found twice");
    }
}

/// The journal has it as it was before it grew, and nothing else does.
#[test]
fn what_grew_and_went_within_a_checkpoint_is_not_called_whole_as_it_was() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let history = History::begin(home.path(), 9, &[]);
    let mount = history.mount();
    let paths: Vec<_> = (0..20).map(|number| mount.join(format!("grown-{number}"))).collect();
    for (number, path) in paths.iter().enumerate() {
        let mut file = fs::File::create(path).unwrap();
        file.write_all(&vec![1; 3_000 * number]).unwrap();
        file.sync_all().unwrap();
    }
    // Longer than the kernel's clock of files stands still.
    thread::sleep(Duration::from_millis(50));
    for path in &paths {
        let mut file = fs::File::options().append(true).open(path).unwrap();
        file.write_all(&[2; 5_000]).unwrap();
        drop(file);
        fs::remove_file(path).unwrap();
    }
    mount.unmount().unwrap();
    for number in 0..paths.len() {
        for file in about(&history, &format!("grown-{number}")) {
            let is_whole = matches!(file.state, State::Whole | State::Shared);
            assert!(!is_whole, "{number}: {file:#?}");
        }
    }
}

/// Our engine leaves the size in the free inode, where a kernel leaves 0.
#[test]
fn sizes_of_what_our_engine_removed_are_known_without_a_journal() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut history = History::begin(home.path(), 7, &[]);
    history.forget_journal();
    history.remove_by_engine("old", 2);
    let (disk, removed) = find(&history);
    let empty: [u8; 32] = Sha256::digest(b"").into();
    let mut known = 0;
    for path in &history.removed {
        let contents = &history.contents[path];
        if contents.contains(&empty) {
            continue;
        }
        let file = removed.files.iter().find(|file| paths(file).contains(path)).unwrap();
        assert_ne!(file.size_from, SizeFrom::Blocks, "{path}: {file:#?}");
        assert!(contents.contains(&digest(&disk, file)), "{path}: {file:#?}");
        known += usize::from(file.state == State::Unsized);
    }
    assert!(known > 10, "{known} files without a copy of their inodes");
}

/// A disk with bad sectors: no file with data in them is called whole, and all others are read.
#[test]
fn removed_files_in_bad_sectors_are_not_whole() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut history = History::begin(home.path(), 8, &[]);
    let mount = history.mount();
    history.remove(&mount, "old", 2);
    mount.unmount().unwrap();
    let (_, removed) = find(&history);
    let disk: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&history.image, true).unwrap());
    let block = |file: &FoundFile| file.extents().first().map(|extent| extent.start);
    let bad: Vec<_> = removed.files.iter().filter(|file| file.size > 40_000).collect();
    let disk_of = Disk::new(Arc::clone(&disk)).unwrap();
    let sectors = bad.iter().filter_map(|file| Some(disk_of.geometry().sector(block(file)?)));
    let gaps = sectors.map(|sector| sector..Sector(sector.0 + 1)).collect();
    let disk = Disk::new(Arc::new(Gaps::new(disk, gaps))).unwrap();
    let found = Removed::find(&disk, &mut |_, _, _| {}).unwrap();
    assert!(found.unreadable_sectors >= 8 * bad.len() as u64 && !bad.is_empty());
    for file in found.files.iter().filter(|file| file.kind == Some(FileType::Regular)) {
        let is_bad = bad.iter().any(|bad| bad.id == file.id);
        assert!(!is_bad || file.state == State::Partly, "{file:#?}");
        digest(&disk, file);
    }
}

/// What was given back to the disk reads as zeroes, which were never in the file.
#[test]
fn what_was_trimmed_is_not_called_whole() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut history = History::begin(home.path(), 10, &[]);
    let mount = history.mount();
    history.remove(&mount, "old", 2);
    // Inodes are freed behind the calls that remove them: only an unmount waits for all of them.
    mount.unmount().unwrap();
    let mount = history.mount();
    let trim = Command::new("fstrim").arg(mount.path()).output().unwrap();
    assert!(trim.status.success(), "{trim:?}");
    mount.unmount().unwrap();
    let (whole, _) = judge(&history, "trimmed");
    let (_, removed) = find(&history);
    let count = removed.files.iter().filter(|file| file.state == State::Partly).count();
    let empty: [u8; 32] = Sha256::digest(b"").into();
    let false_ones = whole.iter().filter(|(_, digest)| **digest != empty);
    let false_ones: Vec<_> = false_ones.map(|(path, _)| path).collect();
    assert!(count > 20 && false_ones.is_empty(), "{count} partly, whole: {false_ones:?}");
}

/// The bar that counts most: whatever was overwritten, nothing false is called whole.
#[test]
fn nothing_false_is_called_whole_after_space_was_used_again() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (mut removed, mut found, mut called_whole) = (0, 0, 0);
    for seed in 100..100 + rounds(5, 500) {
        let options = FORMATS[seed as usize % FORMATS.len()];
        let mut history = History::begin(home.path(), seed, options);
        for round in 0..3 {
            let top = if round == 0 { "old" } else { "" };
            let by_engine = (seed + round) % 2 == 0;
            if by_engine {
                history.remove_by_engine(top, 3);
            }
            let mount = history.mount();
            if !by_engine {
                history.remove(&mount, top, 3);
            }
            history.use_again(&mount, 1 + seed % 4);
            mount.unmount().unwrap();
        }
        let (whole, named) = judge(&history, &format!("seed {seed}, {options:?}"));
        removed += history.removed.len();
        found += named;
        called_whole += whole.len();
        fs::remove_file(&history.image).unwrap();
    }
    assert!(called_whole > 0 && found > removed / 4, "{removed} {found} {called_whole}");
}

/// A kernel logs what a checkpoint ends with: of a file that came and went within one, nothing but its
/// free inode, or not even that.
#[test]
fn what_was_overwritten_within_a_checkpoint_is_not_called_whole() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for (seed, options) in FORMATS.into_iter().enumerate() {
        let mut history = History::begin(home.path(), 200 + seed as u64, options);
        let mount = history.mount();
        history.remove(&mount, "old", 1);
        make_durable(&mount);
        history.overwrite_in_passing(&mount, 100 << 20);
        mount.unmount().unwrap();
        let (whole, _) = judge(&history, &format!("{options:?}"));
        let (_, removed) = find(&history);
        let likely = removed.files.iter().filter(|file| file.state == State::Likely).count();
        assert!(
            !whole.is_empty() && likely > 0,
            "{options:?}: {} whole, {likely} likely",
            whole.len()
        );
    }
}
