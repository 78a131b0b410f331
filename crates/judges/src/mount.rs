//! The kernel's own XFS as a judge: an image mounted through a loop device.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::{Error, program};

/// Whether the kernel may write to the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The image stays as it is; a dirty journal makes the mount fail on a read-only device.
    ReadOnly,
    /// The kernel replays the journal and may change the volume.
    ReadWrite,
}

/// How often an operation is tried again while a device is busy.
const ATTEMPTS: u32 = 50;

/// The pause between attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Where volumes are mounted. Files for tests may be far down, and the path of a socket on a mount has
/// room for 107 bytes.
pub(crate) const MOUNTS: &str = "/tmp";

/// A mounted image. Dropping it unmounts it and frees its loop device, also during a panic.
#[derive(Debug)]
pub struct LoopMount {
    directory: TempDir,
    mounted: bool,
}

impl LoopMount {
    /// Mounts `image` on a fresh directory. `options` are further mount options, such as
    /// `offset=1048576` for a volume inside a disk image. Two volumes with one UUID may be mounted
    /// at a time.
    ///
    /// # Errors
    /// The kernel refuses the volume: the error carries its log messages. Or the process lacks the
    /// right to mount; see [`crate::kernel`].
    pub fn new(image: &Path, access: Access, options: &[&str]) -> Result<Self, Error> {
        let directory = tempfile::Builder::new()
            .prefix("undercroft-mount-")
            .tempdir_in(MOUNTS)
            .map_err(Error::io("cannot make a directory in", Path::new(MOUNTS)))?;
        let is_device = image.metadata().is_ok_and(|data| data.file_type().is_block_device());
        let mut list = String::from(if is_device { "nouuid," } else { "loop,nouuid," });
        list.push_str(if access == Access::ReadOnly { "ro" } else { "rw" });
        for option in options {
            list.push(',');
            list.push_str(option);
        }
        let mut command = Command::new("mount");
        command.args(["-t", "xfs", "-o", &list]).arg(image).arg(directory.path());
        let mut attempt = 1;
        loop {
            let answer = program::run(&mut command)?;
            if answer.status.success() {
                return Ok(Self { directory, mounted: true });
            }
            // Another process may win the race for a free loop device.
            let contended = answer.text.contains("loop device") || answer.text.contains("busy");
            if !contended || attempt == ATTEMPTS {
                let mut answer = answer;
                answer.text.push_str(&kernel_log());
                return Err(answer.failure());
            }
            attempt += 1;
            thread::sleep(PAUSE);
        }
    }

    /// The root directory of the mounted volume.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A path below the root directory.
    #[must_use]
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path().join(path)
    }

    /// Unmounts the volume; the image then holds everything that was written.
    ///
    /// # Errors
    /// The volume stays busy.
    pub fn unmount(mut self) -> Result<(), Error> {
        self.detach()
    }

    fn detach(&mut self) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            let answer = program::run(Command::new("umount").arg(self.path()))?;
            if answer.status.success() {
                self.mounted = false;
                return Ok(());
            }
            if attempt == ATTEMPTS {
                return Err(answer.failure());
            }
            attempt += 1;
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        if self.mounted && self.detach().is_err() {
            // A program still has a file open: the volume is unmounted when that file is closed,
            // and the directory, now empty, can be removed.
            let _ = program::run(Command::new("umount").arg("--lazy").arg(self.path()));
        }
    }
}

/// The kernel's last words about XFS, because `mount` itself says only "wrong fs type".
fn kernel_log() -> String {
    const LINES: usize = 12;
    let Ok(answer) = program::run(&mut Command::new("dmesg")) else { return String::new() };
    let lines: Vec<&str> = answer.text.lines().filter(|line| line.contains("XFS")).collect();
    let tail = &lines[lines.len().saturating_sub(LINES)..];
    format!("the kernel's last lines about XFS:\n{}\n", tail.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Xfsprogs, kernel};

    const SIZE: u64 = 64 << 20;

    fn image(directory: &Path) -> PathBuf {
        let image = directory.join("image");
        Xfsprogs::newest().unwrap().mkfs(&image, SIZE, &[]).unwrap();
        image
    }

    #[test]
    fn what_is_written_stays_in_the_image() {
        if !kernel::available_or_report() {
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let image = image(scratch.path());
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        std::fs::write(mount.join("file"), "kept").unwrap();
        mount.unmount().unwrap();
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        assert_eq!(std::fs::read(mount.join("file")).unwrap(), b"kept");
        assert!(std::fs::write(mount.join("other"), "").is_err());
    }

    #[test]
    fn a_panic_unmounts() {
        if !kernel::available_or_report() {
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let image = image(scratch.path());
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
            sender.send(mount.path().to_owned()).unwrap();
            std::panic::resume_unwind(Box::new("a failing test"));
        });
        let path = receiver.recv().unwrap();
        assert!(thread.join().is_err());
        assert!(!path.exists(), "{} is still there", path.display());
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&path.display().to_string()), "{mounts}");
    }

    #[test]
    fn a_foreign_image_is_refused() {
        if !kernel::available_or_report() {
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        std::fs::write(&image, vec![0; 1 << 20]).unwrap();
        assert!(matches!(LoopMount::new(&image, Access::ReadOnly, &[]), Err(Error::Failed { .. })));
    }
}
