//! Running the command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, image};

/// The command, in an environment that changes nothing.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undercroft"));
    command.env_remove("SOURCE_DATE_EPOCH");
    command
}

pub(crate) fn undercroft<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    program().args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs a command that must succeed; returns its output.
#[track_caller]
pub(crate) fn succeeds<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let output = undercroft(args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must succeed; returns its messages.
#[track_caller]
pub(crate) fn says<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let output = undercroft(args);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    message
}

/// Runs a command that must fail with `status`; returns its message.
#[track_caller]
pub(crate) fn fails<S: AsRef<std::ffi::OsStr>>(
    status: i32,
    args: impl IntoIterator<Item = S>,
) -> String {
    let output = undercroft(args);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{message}");
    message
}

pub(crate) struct Sample {
    directory: tempfile::TempDir,
    pub(crate) image: String,
}

impl Sample {
    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }
}

/// A small tree, built.
pub(crate) fn sample(options: &[&str]) -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir_all(tree.join("etc/deep")).unwrap();
    fs::write(tree.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    fs::write(tree.join("etc/deep/odd\nname"), "").unwrap();
    std::os::unix::fs::symlink("hosts", tree.join("etc/link")).unwrap();
    let image = directory.path().join("image").display().to_string();
    let tree = tree.display().to_string();
    let fixed = ["build", &tree, &image];
    succeeds(fixed.iter().chain(options));
    Sample { directory, image }
}

/// The command as user 65534, without special rights. `home` is a directory that this user may
/// enter afterwards, and gets a copy of the program.
pub(crate) fn as_nobody(home: &Path) -> Command {
    let copy = home.join("undercroft");
    if !copy.exists() {
        // Not by this process: a child that another test starts meanwhile would hold the file open
        // for writing, and it could not be run.
        let program = env!("CARGO_BIN_EXE_undercroft");
        assert!(Command::new("cp").arg(program).arg(&copy).status().unwrap().success());
    }
    for path in [home, &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
    command.env_remove("SOURCE_DATE_EPOCH").current_dir(home).stdin(Stdio::null());
    command
}

/// A tree with 200 small files and a large one.
pub(crate) fn tree(home: &Path) -> String {
    let tree = home.join("tree");
    fs::create_dir_all(tree.join("etc/deep")).unwrap();
    for number in 0..200 {
        fs::write(tree.join(format!("etc/{number}")), vec![number as u8; number * 50]).unwrap();
    }
    fs::write(tree.join("large"), vec![3; 5_000_000]).unwrap();
    tree.display().to_string()
}

/// Has a kernel write the file `early` on the volume `mounted`; `dirty` becomes the image of it in
/// use, as a crash would leave it.
pub(crate) fn crashed(mounted: &Path, dirty: &Path) {
    let mount = LoopMount::new(mounted, Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("early"), "early").unwrap();
    rustix::fs::syncfs(fs::File::open(mount.path()).unwrap()).unwrap();
    image::copy(mounted, dirty).unwrap();
    mount.unmount().unwrap();
}
