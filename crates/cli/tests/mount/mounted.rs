//! A volume of a test, and its mount.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use undercroft_judges::Xfsprogs;

/// The command.
pub(crate) fn undercroft() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undercroft"));
    command.stdin(Stdio::null());
    command
}

/// Runs a command that must succeed; returns its output.
#[track_caller]
pub(crate) fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with `status`; returns its message.
#[track_caller]
pub(crate) fn fails(status: i32, command: &mut Command) -> String {
    let Output { status: ended, stderr, .. } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(ended.code(), Some(status), "{command:?}: {said}");
    said
}

/// Why nothing can be mounted here, or `None`.
fn obstacle() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("these tests mount as root");
    }
    if !Path::new("/dev/fuse").exists() {
        return Some("there is no /dev/fuse; load the module `fuse`, or give it to the container");
    }
    None
}

/// A volume, with a place to mount it at.
pub(crate) struct Volume {
    scratch: tempfile::TempDir,
    image: PathBuf,
}

impl Volume {
    /// An empty volume of 256 MiB.
    pub(crate) fn new() -> Self {
        Self::sized("256M")
    }

    pub(crate) fn sized(size: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        Self::made(scratch, image, size)
    }

    /// With an image at another place.
    pub(crate) fn stored_at(image: PathBuf, size: &str) -> Self {
        Self::made(tempfile::tempdir().unwrap(), image, size)
    }

    fn made(scratch: tempfile::TempDir, image: PathBuf, size: &str) -> Self {
        fs::create_dir(scratch.path().join("at")).unwrap();
        succeeds(undercroft().args(["mkfs", "--size", size]).arg(&image));
        Self { scratch, image }
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.image.clone()
    }

    pub(crate) fn at(&self) -> PathBuf {
        self.scratch.path().join("at")
    }

    /// A path beside the volume.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Mounts it in the background.
    #[track_caller]
    pub(crate) fn mount(&self, options: &[&str]) -> Mounted<'_> {
        if let Some(why) = obstacle() {
            panic!("the mount cannot be tested: {why}");
        }
        let mut command = undercroft();
        command.arg("mount").args(options).arg(self.image()).arg(self.at());
        succeeds(&mut command);
        Mounted { volume: self, server: None }
    }

    /// Mounts it in the foreground; returns when it says that it is ready, as to systemd. Before that
    /// it looks at the mount itself.
    #[track_caller]
    pub(crate) fn serve(&self, options: &[&str]) -> Mounted<'_> {
        if let Some(why) = obstacle() {
            panic!("the mount cannot be tested: {why}");
        }
        let mut command = undercroft();
        command.arg("mount").arg("--foreground").args(options).arg(self.image()).arg(self.at());
        let address = self.scratch.path().join("ready");
        let _ = fs::remove_file(&address);
        let ready = UnixDatagram::bind(&address).unwrap();
        ready.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        command.env("NOTIFY_SOCKET", &address);
        let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut word = [0; 64];
        while !matches!(ready.recv(&mut word), Ok(len) if word[..len].starts_with(b"READY=1")) {
            assert!(server.try_wait().unwrap().is_none(), "the server has ended");
        }
        Mounted { volume: self, server: Some(server) }
    }

    /// Our check and the newest `xfs_repair -n` find nothing.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        succeeds(undercroft().arg("check").arg(self.image()));
        Xfsprogs::newest().unwrap().repair_check(&self.image()).unwrap();
    }
}

/// A volume that is mounted. Dropped in a panic it is unmounted, if it can.
pub(crate) struct Mounted<'v> {
    volume: &'v Volume,
    server: Option<Child>,
}

impl<'v> Mounted<'v> {
    /// A path on the mount.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.volume.at().join(name)
    }

    /// A program on a path of the mount that must succeed; returns its output.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, arguments: &[&str], name: &str) -> String {
        succeeds(Command::new(program).args(arguments).arg(self.path(name)))
    }

    /// The number of the server's process.
    pub(crate) fn process(&self) -> u64 {
        self.status()["pid"].as_u64().unwrap()
    }

    /// The state that it tells.
    #[track_caller]
    pub(crate) fn status(&self) -> serde_json::Value {
        let json = succeeds(undercroft().args(["status", "--json"]).arg(self.volume.at()));
        serde_json::from_str(&json).unwrap()
    }

    /// The server in the foreground.
    pub(crate) fn server(&mut self) -> &mut Child {
        self.server.as_mut().unwrap()
    }

    /// Unmounts, and asks the judges.
    #[track_caller]
    pub(crate) fn unmount(self) {
        let volume = self.unmount_only();
        volume.is_clean();
    }

    #[track_caller]
    pub(crate) fn unmount_only(mut self) -> &'v Volume {
        succeeds(undercroft().arg("unmount").arg(self.volume.at()));
        if let Some(server) = &mut self.server {
            assert!(server.wait().unwrap().success());
        }
        self.volume
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("umount").arg("-l").arg(self.volume.at()).output();
        }
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Longer than anything here takes; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
pub(crate) fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Bytes that differ everywhere.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(&mut next).take(len).collect()
}

/// The arguments of a shell that runs a script.
pub(crate) fn script(text: &str) -> [&OsStr; 3] {
    [OsStr::new("sh"), OsStr::new("-ec"), OsStr::new(text)]
}
