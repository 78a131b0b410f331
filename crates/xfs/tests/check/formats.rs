//! Volumes of every format, filled and aged by the kernel or made by `mkfs.xfs`, are clean by our
//! check as they are by the newest `xfs_repair -n`.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::matrix::{FORMATS, Format};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};
use undercroft_testkit::xfs::check::{check_image, describe};
use undercroft_xfs::Volume;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::recovery::LogState;
use undercroft_xfs::volume::LiveOptions;

/// Makes a filled volume and has it judged by both sides; returns their disagreements.
fn judge(format: &Format) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let image = scratch.path().join("image");
    format.make_filled(&image).map_err(|error| error.to_string())?;
    let newest = Xfsprogs::newest().map_err(|error| error.to_string())?;
    let theirs = newest.repair_check(&image);
    let (report, findings) = check_image(&image).map_err(|error| error.to_string())?;
    if report.is_clean() == theirs.is_ok() {
        return Ok(());
    }
    Err(format!("repair says {theirs:?}, we say {report:?}:\n{}", describe(&findings)))
}

#[test]
fn filled_volumes_are_clean_when_repair_says_so() {
    if !kernel::available_or_report() {
        return;
    }
    let failed: Vec<String> = thread::scope(|scope| {
        let parts = FORMATS.chunks(FORMATS.len().div_ceil(3));
        let judge_part = |part: &[Format]| -> Vec<String> {
            let result = |format: &Format| Some((format.name, judge(format).err()?));
            let failed = part.iter().filter_map(result);
            failed.map(|(name, what)| format!("{name}: {what}")).collect()
        };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || judge_part(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_volume_in_use_has_a_dirty_journal() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (image, copy) = (scratch.path().join("image"), scratch.path().join("copy"));
    FORMATS[0].make(&image, &[]).unwrap();
    let (report, _) = check_image(&image).unwrap();
    assert!(report.is_clean() && report.log == LogState::Clean, "{report:?}");
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    for number in 0..100 {
        fs::write(mount.join(format!("file-{number}")), b"content").unwrap();
    }
    fs::File::open(mount.path()).unwrap().sync_all().unwrap();
    image::copy(&image, &copy).unwrap();
    let (report, findings) = check_image(&copy).unwrap();
    assert_eq!(report.log, LogState::Dirty);
    assert!(findings.iter().any(|finding| finding.structure == "log"), "{}", describe(&findings));
    mount.unmount().unwrap();
    let (report, findings) = check_image(&image).unwrap();
    assert!(report.is_clean() && report.log == LogState::Clean, "{}", describe(&findings));
    assert_eq!(report.inodes, 103);
}

/// More inodes are in a block than in a chunk, so that chunks begin inside of blocks.
#[test]
fn blocks_with_many_small_inodes_are_clean() {
    let scratch = tempfile::tempdir().unwrap();
    let (image, prototype) = (scratch.path().join("image"), scratch.path().join("prototype"));
    let mut text = "/\n0 0\nd--755 0 0\n".to_owned();
    (0..400).for_each(|number| text += &format!("file-{number} ---644 0 0 /dev/null\n"));
    fs::write(&prototype, text + "$\n").unwrap();
    let judge = Xfsprogs::distribution().unwrap();
    for block_size in ["size=32768", "size=65536"] {
        let prototype = prototype.to_str().unwrap();
        let options = ["-f", "-m", "crc=0", "-b", block_size, "-i", "size=256", "-p", prototype];
        judge.mkfs(&image, 400 << 20, &options).unwrap();
        judge.repair_check(&image).unwrap();
        let (report, findings) = check_image(&image).unwrap();
        assert!(report.is_clean(), "{block_size}:\n{}", describe(&findings));
        assert_eq!(report.inodes, 403);
    }
}

/// Makes the free list of the first group one of a kernel before 4.5, which had a slot less, where it
/// wraps: slots 116, 117, 0 and 1.
fn wrap_free_list(tools: &Xfsprogs, image: &Path) {
    let db = |commands: &[String]| {
        let commands: Vec<_> = commands.iter().map(String::as_str).collect();
        tools.db_expert(image, &commands).unwrap()
    };
    let number = |commands: &[&str]| -> u32 {
        let text = tools.db(image, commands).unwrap();
        text.trim().rsplit(' ').next().unwrap().parse().unwrap()
    };
    let first = number(&["agf 0", "print flfirst"]);
    assert_eq!(number(&["agf 0", "print flcount"]), 4);
    let slot = |step: u32| number(&["agfl 0", &format!("print bno[{}]", first + step)]);
    let blocks = [slot(0), slot(1), slot(2), slot(3)];
    let mut writes = vec!["agfl 0".to_owned()];
    writes.extend((0..119).map(|slot| format!("write -- bno[{slot}] 4294967295")));
    let places = [116, 117, 0, 1].into_iter().zip(blocks);
    writes.extend(places.map(|(slot, block)| format!("write -- bno[{slot}] {block}")));
    writes.extend(["agf 0", "write flfirst 116", "write fllast 1"].map(str::to_owned));
    db(&writes);
}

#[test]
fn a_free_list_of_an_old_kernel_is_put_in_order() {
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    let tools = Xfsprogs::newest().unwrap();
    let (metadata, inodes) = ("finobt=0,rmapbt=0,reflink=0,inobtcount=0,bigtime=0", "sparse=0");
    tools.mkfs(&image, 400 << 20, &["-f", "-m", metadata, "-i", inodes]).unwrap();
    wrap_free_list(&tools, &image);
    assert!(tools.repair_check(&image).is_err());
    let (report, findings) = check_image(&image).unwrap();
    assert!(!report.is_clean());
    let about = "the free list is that of a kernel before 4.5";
    assert!(findings.iter().any(|one| one.what.starts_with(about)), "{}", describe(&findings));
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
    let new = NewInode::new(FileType::Regular, 0o644);
    let file = ops::make_open(&volume, volume.geometry().root_inode, b"file", &new).unwrap();
    let now = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    file.write(0, &[7; 100_000], now).unwrap();
    drop(file);
    volume.close().unwrap();
    drop(volume);
    tools.repair_check(&image).unwrap();
    let (report, findings) = check_image(&image).unwrap();
    assert!(report.is_clean(), "{}", describe(&findings));
}
