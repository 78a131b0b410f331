//! The files that an image names.
//!
//! An image may come from anyone, and names what it likes. So they are opened only when somebody has allowed
//! it, and only in one directory or below.

use crate::error::ContainerError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where the files have to be that an image names.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    /// None is opened without.
    directory: Option<PathBuf>,
}

impl Neighbours {
    /// Those beside a file or below, or none at all.
    pub(crate) fn of(path: &Path, allowed: bool) -> io::Result<Self> {
        if !allowed {
            return Ok(Self { directory: None });
        }
        let path = path.canonicalize()?;
        Ok(Self { directory: Some(path.parent().unwrap_or(Path::new("/")).to_owned()) })
    }

    /// Opens a file that the one at `above` names for `part`, such as the bytes that it has the changes to.
    pub(crate) fn open(
        &self,
        above: &Path,
        name: &str,
        part: &'static str,
    ) -> Result<(PathBuf, File), ContainerError> {
        let (path, named) = (above.to_owned(), name.to_owned());
        let Some(directory) = &self.directory else {
            return Err(ContainerError::Named { path, part, named });
        };
        let there = above.parent().unwrap_or(Path::new("")).join(name);
        // Without symbolic links: those lead anywhere.
        let there = there
            .canonicalize()
            .map_err(|source| ContainerError::Open { path: there.clone(), source })?;
        if !there.starts_with(directory) {
            return Err(ContainerError::Elsewhere { path, part, named });
        }
        let failed = |source| ContainerError::Open { path: there.clone(), source };
        if !there.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        let file = File::open(&there).map_err(failed)?;
        Ok((there, file))
    }
}
