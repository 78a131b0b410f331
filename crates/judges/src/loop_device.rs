//! A block device over a file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::{Error, program};

/// How often an operation is tried again while another process takes the same device.
const ATTEMPTS: u32 = 50;

/// The pause between attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A loop device. Dropping it detaches it, also during a panic.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches a free loop device to `file`. Needs root.
    ///
    /// # Errors
    /// There is no free device, or the process lacks the right.
    pub fn attach(file: &Path) -> Result<Self, Error> {
        Self::attach_with(file, 512)
    }

    /// As [`attach`](Self::attach), with logical blocks of `block` bytes.
    ///
    /// # Errors
    /// As there.
    pub fn attach_with(file: &Path, block: u32) -> Result<Self, Error> {
        let block = block.to_string();
        let mut attempt = 1;
        loop {
            let mut command = Command::new("losetup");
            let answer = program::run(
                command.args(["--find", "--show", "--sector-size", &block]).arg(file),
            )?;
            if answer.status.success() {
                return Ok(Self { path: PathBuf::from(answer.text.trim()) });
            }
            if attempt == ATTEMPTS {
                return Err(answer.failure());
            }
            attempt += 1;
            thread::sleep(PAUSE);
        }
    }

    /// The device's name, such as `/dev/loop3`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The devices that are attached to `file`.
    ///
    /// # Errors
    /// They cannot be listed.
    pub fn attached(file: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut command = Command::new("losetup");
        command.args(["--noheadings", "--output", "NAME", "--associated"]).arg(file);
        let list = program::run(&mut command)?.success()?;
        Ok(list.split_whitespace().map(PathBuf::from).collect())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // While another process looks at the device, it outlives its detachment, and what is in its
        // page cache reaches the file only later.
        if let Err(error) = File::open(&self.path).and_then(|device| device.sync_all()) {
            eprintln!("{}: not all is in its file: {error}", self.path.display());
        }
        let detached = program::run(Command::new("losetup").arg("--detach").arg(&self.path));
        // A second panic would hide the first.
        if !detached.is_ok_and(|answer| answer.status.success()) {
            eprintln!("{} stays attached", self.path.display());
        }
    }
}
