//! A directory for one mount, which goes with it.

use anyhow::{Context, Result};
use std::env;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory; it is empty when it is dropped, and goes then.
pub(super) struct PrivatePlace(PathBuf);

impl PrivatePlace {
    pub(super) fn new() -> Result<Self> {
        let name = format!("undercroft-mount-{}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivatePlace {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes the directory. The kernel takes away copies of the mount in other mount name spaces with
/// it, so that those do not keep the volume.
pub(super) fn remove(path: &Path) {
    // It may be gone; a mount that is still in use keeps it.
    let _ = fs::remove_dir(path);
}
