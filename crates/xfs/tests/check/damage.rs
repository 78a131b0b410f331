//! Every damage that `xfs_repair -n` sees is seen, and some that it does not.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::damage::{CORPUS, Damage, volume};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};
use undercroft_testkit::xfs::check::{check_image, describe};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{Finding, Severity};
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget};
use undercroft_xfs::recovery::recover;
use undercroft_xfs::volume::LiveOptions;

/// Damages that `xfs_repair -n` is silent about.
const SILENT: &[Damage] = &[
    Damage { name: "secondary superblock crc", script: &["sb 1", "write -c crc 0"] },
    Damage { name: "secondary superblock label", script: &["sb 1", "write -d fname \"other\""] },
    Damage { name: "secondary superblock logblocks", script: &["sb 2", "write -d logblocks 900"] },
    Damage {
        name: "size of a directory",
        script: &["path /directories/leaf", "write -d core.size 4096"],
    },
];

/// Applies a damage to a copy of `pristine`; says whether we see it.
fn is_seen(pristine: &Path, copy: &Path, damage: &Damage) -> Result<bool, String> {
    image::copy(pristine, copy).map_err(|error| error.to_string())?;
    damage.apply(copy).map_err(|error| error.to_string())?;
    // Without a superblock there is no report.
    let Ok((report, findings)) = check_image(copy) else { return Ok(true) };
    let error = findings.iter().any(|finding| finding.severity == Severity::Error);
    if error == report.is_clean() {
        return Err(format!("{report:?} with\n{}", describe(&findings)));
    }
    Ok(!findings.is_empty())
}

/// Judges one damage: our check finds all that `xfs_repair -n` finds, and defects that it does not
/// report. Where the kernel puts things differs from volume to volume, so that a script may change
/// nothing.
fn judge(pristine: &Path, copy: &Path, damage: &Damage) -> Result<(), String> {
    if is_seen(pristine, copy, damage)? {
        return Ok(());
    }
    if SILENT.iter().any(|silent| silent.name == damage.name) {
        return Err("is not seen".into());
    }
    let newest = Xfsprogs::newest().map_err(|error| error.to_string())?;
    newest.repair_check(copy).map_err(|error| format!("is not seen, but {error}"))
}

#[test]
fn each_damage_is_seen() {
    if !kernel::available_or_report() {
        return;
    }
    let (directory, pristine) = volume().unwrap();
    let (report, findings) = check_image(&pristine).unwrap();
    assert!(report.is_clean(), "{report:?}\n{}", describe(&findings));
    let damages: Vec<&Damage> = CORPUS.iter().chain(SILENT).collect();
    let unseen: Vec<String> = thread::scope(|scope| {
        let parts = damages.chunks(damages.len().div_ceil(3)).enumerate();
        let (directory, pristine) = (directory.path(), &pristine);
        let threads: Vec<_> = parts
            .map(|(part, damages)| {
                scope.spawn(move || {
                    let copy = directory.join(format!("copy-{part}.img"));
                    let result = |damage: &&Damage| {
                        let what = judge(pristine, &copy, damage).err()?;
                        Some(format!("{}: {what}", damage.name))
                    };
                    damages.iter().filter_map(result).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}

#[test]
fn what_a_crash_leaves_behind_is_a_warning() {
    if !kernel::available_or_report() {
        return;
    }
    let (_directory, image) = volume().unwrap();
    let shrink =
        Damage { name: "file size", script: &["path /files/extents", "write -d core.size 100"] };
    let incomplete = CORPUS.iter().find(|damage| damage.name == "attr leaf incomplete").unwrap();
    shrink.apply(&image).unwrap();
    incomplete.apply(&image).unwrap();
    let (report, findings) = check_image(&image).unwrap();
    assert!(report.is_clean(), "{report:?}\n{}", describe(&findings));
    assert_eq!((report.errors, report.warnings), (0, 2), "{}", describe(&findings));
    let warned = |what: &str| {
        let is_it = |it: &Finding| it.severity == Severity::Warning && it.what.contains(what);
        assert!(findings.iter().any(is_it), "{what}:\n{}", describe(&findings));
    };
    warned("behind its size of 100");
    warned("entry 3 was left incomplete by a crash");
    warned("it goes when the file is removed");
}

/// What a free inode says of a list is handed on to the file that gets it.
#[test]
fn a_free_inode_is_on_no_list() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, 64 << 20, &[]).unwrap();
    let list = Damage { name: "list", script: &["inode 150", "write -d next_unlinked 140"] };
    list.apply(&image).unwrap();
    let (report, findings) = check_image(&image).unwrap();
    assert!(!report.is_clean(), "{report:?}");
    assert_eq!(
        describe(&findings),
        "  inode 150: inode next_unlinked: is 140, but the inode is on no list"
    );
}

/// The journal in the bytes of an image.
struct Journal {
    range: Range<usize>,
    /// The last record: a header and a block.
    last: usize,
}

impl Journal {
    const RECORD: usize = 1024;

    fn find(image: &Path, bytes: &[u8]) -> Self {
        let volume = Volume::open(Arc::new(FileDevice::open(image, true).unwrap())).unwrap();
        let geometry = volume.geometry();
        let start = geometry.sector(geometry.log_start).0 as usize * 512;
        let range = start..start + ((geometry.log_blocks as usize) << geometry.block_log);
        let cycle = |at: &usize| bytes[*at..].starts_with(&[0xfe, 0xed, 0xba, 0xbe, 0, 0, 0, 1]);
        let last = range.clone().step_by(512).rfind(cycle).unwrap();
        Self { range, last }
    }

    /// Changes a field of the last record, whose checksum is made right again.
    fn set(&self, bytes: &mut [u8], offset: usize, value: &[u8]) {
        let record = &mut bytes[self.last..self.last + Self::RECORD];
        record[offset..offset + value.len()].copy_from_slice(value);
        record[32..36].fill(0);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&record[..328]), &record[512..]);
        record[32..36].copy_from_slice(&crc.to_le_bytes());
    }

    /// What kernels refuse, or `xfs_repair` alone.
    fn contradict(&self, name: &str, bytes: &mut [u8]) {
        let last_block = self.range.end - 512;
        match name {
            "zeroes" => bytes[self.range.clone()].fill(0),
            "cycle" => self.set(bytes, 4, &[0, 0, 0, 2]),
            "tail" => self.set(bytes, 24, &[0; 8]),
            "last block" => bytes[last_block + 3] = 2,
            "first block" => bytes[self.range.start + 7] = 2,
            _ => self.set(bytes, 320, &[0; 4]),
        }
    }
}

/// What was written behind such a journal could not be mounted.
#[test]
fn a_journal_that_contradicts_itself_is_seen_and_not_continued() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (image, copy) = (directory.path().join("image"), directory.path().join("copy"));
    let newest = Xfsprogs::newest().unwrap();
    newest.mkfs(&image, 64 << 20, &[]).unwrap();
    for name in ["file", "another"] {
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        std::fs::write(mount.join(name), name).unwrap();
        mount.unmount().unwrap();
    }
    let pristine = std::fs::read(&image).unwrap();
    let journal = Journal::find(&image, &pristine);
    let mounts = |bytes: &[u8]| {
        std::fs::write(&copy, bytes).unwrap();
        LoopMount::new(&copy, Access::ReadWrite, &[]).map(|mount| mount.unmount().unwrap()).is_ok()
    };
    assert!(mounts(&pristine));
    for name in ["zeroes", "cycle", "tail", "last block", "first block", "size"] {
        let mut bytes = pristine.clone();
        journal.contradict(name, &mut bytes);
        std::fs::write(&copy, &bytes).unwrap();
        assert!(newest.repair_check(&copy).is_err() || !mounts(&bytes), "{name}: all accept it");
        std::fs::write(&copy, &bytes).unwrap();
        let (report, findings) = check_image(&copy).unwrap();
        assert!(!report.is_clean(), "{name}: {report:?}");
        assert!(describe(&findings).contains("volume: log"), "{name}: {}", describe(&findings));
        if name == "size" {
            // Of no use to the records that follow.
            continue;
        }
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&copy, false).unwrap());
        Volume::open_live(Arc::clone(&device), &LiveOptions::default()).unwrap_err();
        let half =
            ShrinkOptions { target: ShrinkTarget::Bytes(32 << 20), keep_inode_numbers: false };
        let refused = maintain::shrink(&device, half, &mut |_, _| ()).unwrap_err();
        assert!(refused.to_string().contains("the journal cannot be used"), "{name}: {refused}");
        recover(&device, &mut |_| ()).unwrap_err();
        drop(device);
        assert!(std::fs::read(&copy).unwrap() == bytes, "{name}: it was written to");
    }
}
