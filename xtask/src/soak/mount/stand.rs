//! A fresh volume for a suite, mounted by our command.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use undercroft_judges::suite::ends;
use undercroft_judges::{ServedMount, Xfsprogs};

/// Bytes of a volume.
pub(super) const SIZE: u64 = 4 << 30;

/// A mounted volume, and a directory outside of it.
pub(super) struct Stand {
    program: PathBuf,
    options: Vec<&'static str>,
    /// Gone for as long as the volume is not mounted.
    mount: Option<ServedMount>,
    /// Last, since the image lies there.
    scratch: TempDir,
}

impl Stand {
    /// Makes a volume and mounts it with these options; `program` is the command `undercroft`.
    pub(super) fn new(program: &Path, options: &[&'static str]) -> Result<Self> {
        let scratch = tempfile::tempdir().context("no room for temporary files")?;
        let image = scratch.path().join("image");
        Xfsprogs::newest()?.mkfs(&image, SIZE, &[])?;
        let mount = Some(ServedMount::new(program, &image, options)?);
        Ok(Self { program: program.to_owned(), options: options.to_owned(), mount, scratch })
    }

    /// The root of the mounted volume.
    pub(super) fn path(&self) -> PathBuf {
        self.mount.as_ref().map(ServedMount::path).unwrap_or_default()
    }

    /// A directory that stays when the server is killed.
    pub(super) fn outside(&self) -> &Path {
        self.scratch.path()
    }

    /// The process of the server.
    pub(super) fn server(&self) -> Result<u32> {
        self.mount.as_ref().map(ServedMount::server).context("the volume is not mounted")
    }

    fn image(&self) -> PathBuf {
        self.scratch.path().join("image")
    }

    /// Kills the server.
    pub(super) fn kill(&mut self) -> Result<()> {
        let mut mount = self.mount.take().context("the volume is not mounted")?;
        Ok(mount.kill()?)
    }

    /// Mounts the volume that a killed server left, which replays it.
    pub(super) fn revive(&mut self) -> Result<()> {
        self.mount = Some(ServedMount::new(&self.program, &self.image(), &self.options)?);
        Ok(())
    }

    /// Unmounts the volume in order, and mounts it again.
    pub(super) fn again(&mut self) -> Result<()> {
        self.mount.take().context("the volume is not mounted")?.unmount()?;
        self.revive()
    }

    /// Has all judges look at the end; says what they saw.
    pub(super) fn accept(&mut self) -> Result<String> {
        let mount = self.mount.take().context("the volume is not mounted")?;
        let entries = ends::accept(&self.program, &self.image(), mount)?;
        Ok(format!("{entries} entries at its end"))
    }
}
