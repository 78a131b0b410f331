//! A mounted, empty XFS volume to make source trees on: it takes what other file systems refuse,
//! such as extended attributes of 64 KiB.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::mount::Access;
use crate::{Error, LoopMount, Xfsprogs};

/// A volume of the newest format, mounted read-write; gone when dropped.
#[derive(Debug)]
pub struct Scratch {
    // Unmounted before its image goes: fields drop in the order they are declared.
    mount: LoopMount,
    directory: TempDir,
}

impl Scratch {
    /// Makes and mounts a volume of `size` bytes; the image is sparse. Needs root.
    ///
    /// # Errors
    /// The newest xfsprogs are missing, or the kernel refuses the mount.
    pub fn new(size: u64) -> Result<Self, Error> {
        let directory = tempfile::tempdir()
            .map_err(Error::io("cannot make a directory in", &std::env::temp_dir()))?;
        let image = directory.path().join("scratch.img");
        Xfsprogs::newest()?.mkfs(&image, size, &[])?;
        let mount = LoopMount::new(&image, Access::ReadWrite, &[])?;
        Ok(Self { mount, directory })
    }

    /// The root directory of the volume.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.mount.path()
    }

    /// Unmounts the volume and hands its image over, in a directory that lives as long as the
    /// returned value.
    ///
    /// # Errors
    /// The volume stays busy.
    pub fn into_image(self) -> Result<(TempDir, PathBuf), Error> {
        let Self { mount, directory } = self;
        mount.unmount()?;
        let image = directory.path().join("scratch.img");
        Ok((directory, image))
    }
}
