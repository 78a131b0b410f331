//! A volume of ours mounted through FUSE by the command `undercroft mount`, whose process the test
//! can kill.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::mount::MOUNTS;
use crate::{Error, program};

/// How long a mount may take; it may replay a journal first.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause between two looks at whether something has happened.
const PAUSE: Duration = Duration::from_millis(5);

/// A mounted image and its server. Dropping it kills the server and takes the mount away, also
/// during a panic.
#[derive(Debug)]
pub struct ServedMount {
    program: PathBuf,
    /// Holds the mount point and the server's log.
    home: TempDir,
    server: Child,
    mounted: bool,
}

impl ServedMount {
    /// Mounts `image` on a fresh directory with `program`, the command `undercroft`, and returns
    /// when the mount answers. `options` are those behind `-o`.
    ///
    /// # Errors
    /// The server ends before its mount answers: the error carries its log. Or the process lacks
    /// the right to mount; see [`crate::kernel`].
    pub fn new(program: &Path, image: &Path, options: &[&str]) -> Result<Self, Error> {
        let home = tempfile::Builder::new()
            .prefix("undercroft-served-")
            .tempdir_in(MOUNTS)
            .map_err(Error::io("cannot make a directory in", Path::new(MOUNTS)))?;
        let directory = home.path().join("mount");
        fs::create_dir(&directory).map_err(Error::io("cannot make", &directory))?;
        // Other users than root enter it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(home.path(), open).map_err(Error::io("cannot open", home.path()))?;
        let log = home.path().join("log");
        let output = File::create(&log).map_err(Error::io("cannot create", &log))?;
        let mut command = Command::new(program);
        command.args(["mount", "--foreground"]);
        if !options.is_empty() {
            command.args(["-o", &options.join(",")]);
        }
        command.arg(image).arg(&directory).stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(Error::io("cannot open", &log))?).stderr(output);
        let server = command.spawn().map_err(Error::io("cannot start", program))?;
        let program = program.to_owned();
        let mut mount = Self { program, home, server, mounted: false };
        mount.wait_for_answer()?;
        Ok(mount)
    }

    /// The root directory of the mounted volume.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.home.path().join("mount")
    }

    /// The number of the server's process.
    #[must_use]
    pub fn server(&self) -> u32 {
        self.server.id()
    }

    /// What the server has said so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// Unmounts the volume with `undercroft unmount`: the image then holds everything, and the
    /// server has ended.
    ///
    /// # Errors
    /// The volume stays busy, or the server reports that something went wrong.
    pub fn unmount(mut self) -> Result<(), Error> {
        let mut command = Command::new(&self.program);
        program::run(command.arg("unmount").arg(self.path()))?.success()?;
        self.mounted = false;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let ended = self.server.try_wait();
            if let Some(status) = ended.map_err(Error::io("cannot await", &self.program))? {
                return if status.success() { Ok(()) } else { Err(self.failed(&status)) };
            }
            thread::sleep(PAUSE);
        }
        Err(self.failed("no end, though the volume is unmounted"))
    }

    /// Kills the server with SIGKILL.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn kill(&mut self) -> Result<(), Error> {
        let directory = self.path();
        let failed = || Error::io("cannot kill the server of", &directory);
        if let Some(status) = self.server.try_wait().map_err(failed())? {
            return Err(self.failed(&status));
        }
        self.server.kill().map_err(failed())?;
        self.server.wait().map(drop).map_err(failed())
    }

    fn wait_for_answer(&mut self) -> Result<(), Error> {
        let outside = fs::metadata(self.home.path())
            .map_err(Error::io("cannot stat", self.home.path()))?
            .dev();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let ended = self.server.try_wait();
            if let Some(status) = ended.map_err(Error::io("cannot await", &self.program))? {
                return Err(self.failed(&status));
            }
            if fs::metadata(self.path()).is_ok_and(|root| root.dev() != outside) {
                self.mounted = true;
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        Err(self.failed("no answer"))
    }

    /// The error of a server that did not do its work.
    fn failed(&self, status: &(impl ToString + ?Sized)) -> Error {
        Error::Failed {
            command: format!("{} mount --foreground", self.program.display()),
            status: status.to_string(),
            output: self.log(),
        }
    }
}

impl Drop for ServedMount {
    fn drop(&mut self) {
        if self.server.try_wait().is_ok_and(|ended| ended.is_none()) {
            // Nothing more can be done about a failure here.
            let _ = self.server.kill();
            let _ = self.server.wait();
        }
        // Lazily: a program may still have a file open. Of a killed server only this mount is left.
        if self.mounted || self.path().read_dir().is_err() {
            let _ = program::run(Command::new("umount").arg("--lazy").arg(self.path()));
        }
    }
}
