//! Builds that are stopped halfway.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::run::program;

/// Sends half of an archive of 8 MiB to a build of standard input, so that it has begun and cannot
/// end, and then the signal.
pub(crate) fn interrupt_halfway(mut child: Child, signal: &str) {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), vec![7; 8 << 20]).unwrap();
    let tar = ["--create", "--directory"];
    let archive = Command::new("tar").args(tar).arg(home.path()).arg(".").output().unwrap().stdout;
    let mut pipe = child.stdin.take().unwrap();
    // Far more than a pipe holds: when all is written, most was read.
    pipe.write_all(&archive[..4 << 20]).unwrap();
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let status = child.wait().unwrap();
    assert!(status.signal().is_some(), "{status}");
    drop(pipe);
}

#[test]
fn a_build_that_is_stopped_leaves_nothing() {
    for signal in ["INT", "TERM", "HUP", "KILL"] {
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("image");
        let old = b"an image that was there before";
        for existing in [false, true] {
            if existing {
                fs::write(&image, old).unwrap();
            }
            // Signals may be ignored where the tests run, in a shell's background for instance, and
            // children would ignore them too.
            let child = Command::new("env")
                .arg("--default-signal=INT,TERM,HUP")
                .arg(program().get_program())
                .args(["build", "--force", "--size=64M"])
                .args(["--uuid=2f5e0c3a-0000-4000-8000-000000000001", "-"])
                .arg(&image)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            interrupt_halfway(child, signal);
            assert_eq!(fs::read_dir(home.path()).unwrap().count(), usize::from(existing));
            assert!(!existing || fs::read(&image).unwrap() == old);
        }
    }
}
