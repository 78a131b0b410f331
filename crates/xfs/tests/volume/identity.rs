//! Labels and UUIDs, beside what the kernel and `xfs_db` make of a copy.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::Volume;
use undercroft_xfs::maintain;
use undercroft_xfs::ops;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

fn device(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, false).unwrap())
}

/// A volume with a file by the kernel.
fn filled(image: &Path) {
    Xfsprogs::newest().unwrap().mkfs(image, 300 << 20, &["-L", "first"]).unwrap();
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    std::fs::write(mount.join("file"), "content").unwrap();
    mount.unmount().unwrap();
}

/// A file is truncated and written again. Without the flush its size is in the log only if the
/// data reached the device before the shutdown.
fn write_and_flush(path: &Path, content: &[u8]) {
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(content).unwrap();
    file.sync_all().unwrap();
}

/// What all superblocks say in these fields.
fn superblocks(image: &Path, fields: &str) -> String {
    let fields = format!("print {fields}");
    let commands: Vec<String> =
        (0..4).flat_map(|ag| [format!("sb {ag}"), fields.clone()]).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    Xfsprogs::newest().unwrap().db(image, &commands).unwrap()
}

#[test]
fn a_label_as_by_the_kernel() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (ours, its) = (directory.path().join("ours.img"), directory.path().join("its.img"));
    filled(&ours);
    image::copy(&ours, &its).unwrap();
    for label in ["twelve-bytes", "ä", ""] {
        let volume = Volume::open_live(device(&ours), &LiveOptions::default()).unwrap();
        maintain::set_label(&volume, label.as_bytes()).unwrap();
        assert_eq!(maintain::label(&volume).unwrap(), label.as_bytes());
        volume.close().unwrap();
        let mount = LoopMount::new(&its, Access::ReadWrite, &[]).unwrap();
        let command =
            if label.is_empty() { "label -c".into() } else { format!("label -s {label}") };
        let done =
            Command::new("xfs_io").args(["-c", &command]).arg(mount.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        mount.unmount().unwrap();
        let fields = "fname uuid meta_uuid features_incompat dblocks rootino rbmino inprogress";
        assert_eq!(superblocks(&ours, fields), superblocks(&its, fields), "{label}");
        judged::sound(&ours, label);
    }
    let volume = Volume::open_live(device(&ours), &LiveOptions::default()).unwrap();
    for label in ["thirteen byte", "a\0b"] {
        let message = maintain::set_label(&volume, label.as_bytes()).unwrap_err().to_string();
        assert!(message.contains("at most 12 bytes"), "{message}");
    }
    volume.close().unwrap();
}

#[test]
fn a_uuid_as_by_xfs_db() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (ours, its) = (directory.path().join("ours.img"), directory.path().join("its.img"));
    filled(&ours);
    image::copy(&ours, &its).unwrap();
    let first = Volume::open(device(&ours)).unwrap().superblock().uuid;
    let xfsprogs = Xfsprogs::newest().unwrap();
    for uuid in [Uuid::from_u128(1), Uuid::from_u128(2), first, Uuid::from_u128(3)] {
        maintain::set_uuid(&device(&ours), uuid).unwrap();
        let command = if uuid == first { "uuid restore".into() } else { format!("uuid {uuid}") };
        xfsprogs.db_expert(&its, &[&command]).unwrap();
        let fields = "fname uuid meta_uuid features_incompat";
        assert_eq!(superblocks(&ours, fields), superblocks(&its, fields), "{uuid}");
        judged::sound(&ours, &uuid.to_string());
        // The kernel goes on in the journal; its records are replayed with records of the former
        // UUID right before it.
        let mount = LoopMount::new(&ours, Access::ReadWrite, &[]).unwrap();
        assert_eq!(std::fs::read(mount.join("file")).unwrap(), b"content");
        write_and_flush(&mount.join("file"), b"content");
        std::fs::write(mount.join(uuid.to_string()), "late").unwrap();
        let stop = ["-x", "-c", "shutdown -f"];
        assert!(Command::new("xfs_io").args(stop).arg(mount.path()).status().unwrap().success());
        mount.unmount().unwrap();
        let copy = directory.path().join("copy.img");
        image::copy(&ours, &copy).unwrap();
        let mount = LoopMount::new(&copy, Access::ReadWrite, &[]).unwrap();
        assert!(mount.join(uuid.to_string()).exists());
        mount.unmount().unwrap();
        let volume = Volume::open_live(device(&ours), &LiveOptions::default()).unwrap();
        assert!(volume.recovery().is_some(), "the kernel left it dirty");
        let root = volume.inode(volume.geometry().root_inode).unwrap();
        let late = ops::lookup(&volume, &root.read(), uuid.to_string().as_bytes()).unwrap();
        assert!(late.is_some());
        drop(root);
        volume.close().unwrap();
        judged::sound(&ours, &uuid.to_string());
    }
}
