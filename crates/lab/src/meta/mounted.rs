//! A directory of a mounted file system: one system call for each operation.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mknodat, open, statat, syncfs, unlinkat};

use super::target::{Directories, Target};
use crate::error::LabError;

/// A directory that the workload makes its own directories in.
pub(super) struct Mounted {
    top: PathBuf,
}

/// The directories of one round, open.
struct Made<'t> {
    top: &'t Path,
    own: PathBuf,
    open: Vec<OwnedFd>,
}

impl Mounted {
    pub(super) fn new(top: &Path) -> Self {
        Self { top: top.to_owned() }
    }
}

fn failed<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> LabError {
    move |source| LabError::Target { what, path: path.to_owned(), source: source.into() }
}

impl Target for Mounted {
    fn make_directories(&self, count: usize) -> Result<Box<dyn Directories + '_>, LabError> {
        let own = self.top.join(format!("meta-{:08x}", fastrand::u32(..)));
        fs::create_dir(&own).map_err(failed("create", &own))?;
        let open_one = |index: usize| {
            let path = own.join(index.to_string());
            fs::create_dir(&path).map_err(failed("create", &path))?;
            open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(failed("open", &path))
        };
        let open = (0..count).map(open_one).collect::<Result<_, LabError>>()?;
        Ok(Box::new(Made { top: &self.top, own, open }))
    }

    fn sync(&self) -> Result<(), LabError> {
        let top = File::open(&self.top).map_err(failed("open", &self.top))?;
        syncfs(top).map_err(failed("sync", &self.top))
    }

    fn close(self: Box<Self>) -> Result<(), LabError> {
        Ok(())
    }
}

impl Directories for Made<'_> {
    fn create(&self, directory: usize, name: &str) -> Result<(), LabError> {
        mknodat(&self.open[directory], name, FileType::RegularFile, Mode::from(0o644), 0)
            .map_err(failed("create a file in", self.top))
    }

    fn stat(&self, directory: usize, name: &str) -> Result<u64, LabError> {
        let stat = statat(&self.open[directory], name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(failed("look at a file in", self.top))?;
        // Its width depends on the architecture.
        #[allow(clippy::unnecessary_cast, reason = "32 bits wide on some architectures")]
        Ok(stat.st_nlink as u64)
    }

    fn delete(&self, directory: usize, name: &str) -> Result<(), LabError> {
        unlinkat(&self.open[directory], name, AtFlags::empty())
            .map_err(failed("delete a file in", self.top))
    }

    fn remove(self: Box<Self>) -> Result<(), LabError> {
        for index in 0..self.open.len() {
            let path = self.own.join(index.to_string());
            fs::remove_dir(&path).map_err(failed("remove", &path))?;
        }
        fs::remove_dir(&self.own).map_err(failed("remove", &self.own))
    }
}
