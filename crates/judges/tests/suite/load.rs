//! The load that crashes are judged with, on the kernel's own XFS: what it promises is there behind
//! a shutdown, and what is missing is seen.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use undercroft_judges::load::{Load, work_if_asked};
use undercroft_judges::mount::Access;
use undercroft_judges::{Error, LoopMount, Xfsprogs, kernel};

/// This program as a process of the load.
fn program() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "load::worker", "--ignored"]);
    command
}

#[test]
#[ignore = "a process of the load, started by the other test"]
fn worker() {
    assert!(work_if_asked().unwrap());
}

#[test]
fn a_kernel_that_shuts_down_keeps_what_was_synced() {
    if !kernel::available_or_report() {
        return;
    }
    let newest = Xfsprogs::newest().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    newest.mkfs(&image, 512 << 20, &[]).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let mut load = Load::start(&mount.join("load"), scratch.path(), 3, 1, &program).unwrap();
    thread::sleep(Duration::from_millis(700));
    load.alive().unwrap();
    // Before the kernel shuts down: an fsync that meets the shutdown may return with success, and the
    // file is not there afterwards (Linux 6.18, two of fifty times).
    let logs = load.stop().unwrap();
    let mut shutdown = Command::new(newest.tool("xfs_io").unwrap());
    assert!(shutdown.args(["-x", "-c", "shutdown"]).arg(mount.path()).status().unwrap().success());
    mount.unmount().unwrap();

    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let work = logs.verify(&mount.join("load")).unwrap();
    assert!(work.operations > work.syncs && work.syncs > 20, "{work:?}");
    for worker in 0..3 {
        for directory in ["", "inner"] {
            let path = mount.join(format!("load/w{worker}/{directory}"));
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        }
    }
    let Err(Error::Complaint(report)) = logs.verify(&mount.join("load")) else {
        panic!("files are lost, and that was not seen");
    };
    assert!(report.to_string().contains("is lost"), "{report}");
}
