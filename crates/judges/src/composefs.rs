//! The tools of composefs, the newest: the distribution has none.

use std::path::{Path, PathBuf};

use crate::Error;

/// The tools.
pub const TOOLS: [&str; 2] = ["mkcomposefs", "composefs-info"];

/// The home of the tools that `cargo xtask judges` unpacks: `bin/` holds the wrappers.
#[must_use]
pub fn newest_directory() -> PathBuf {
    crate::cache::directory().join("composefs-newest")
}

/// The tools of composefs.
#[derive(Debug, Clone)]
pub struct Composefs {
    mkcomposefs: PathBuf,
    info: PathBuf,
}

impl Composefs {
    /// The tools as `cargo xtask judges` set them up, or in the path.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn newest() -> Result<Self, Error> {
        let tool = |name: &str| {
            let unpacked = newest_directory().join("bin").join(name);
            let found = Some(unpacked).filter(|path| path.is_file());
            found.or_else(|| crate::program::find(name.as_ref())).ok_or_else(|| Error::Missing {
                program: name.to_owned(),
                remedy: "run `cargo xtask judges`, which sets it up",
            })
        };
        let [mkcomposefs, info] = TOOLS.map(tool);
        Ok(Self { mkcomposefs: mkcomposefs?, info: info? })
    }

    /// `mkcomposefs`.
    #[must_use]
    pub fn mkcomposefs(&self) -> &Path {
        &self.mkcomposefs
    }

    /// `composefs-info`.
    #[must_use]
    pub fn info(&self) -> &Path {
        &self.info
    }
}
