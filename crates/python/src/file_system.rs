//! An open volume.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use undercroft_block::BlockDevice;
use undercroft_fs::{
    Change, Existing, File, NewFile, OpenOptions, RenameFlags, SetMode, SetTime, WalkEntry,
};

use crate::disk::{self, Place};
use crate::error::{Failure, failed};
use crate::open_file::OpenFile;
use crate::status::{Status, timestamp};

/// A volume. Paths are bytes from its root.
#[pyclass(frozen, module = "undercroft")]
pub(crate) struct FileSystem {
    fs: undercroft_fs::FileSystem,
}

impl FileSystem {
    /// Opens the volume at a place of a disk.
    pub(crate) fn in_disk(
        disk: Arc<dyn BlockDevice>,
        place: Place,
        writable: bool,
        replay: bool,
    ) -> Result<Self, Failure> {
        let device = disk::volume_in(disk, place)?;
        let options = if writable { OpenOptions::writable() } else { OpenOptions::read_only() };
        let options = if replay { options } else { options.without_replay() };
        Ok(Self { fs: undercroft_fs::FileSystem::open(device, &options)? })
    }

    pub(crate) fn format(path: &Path, size: u64) -> Result<Self, Failure> {
        Ok(Self { fs: undercroft_fs::FileSystem::format(path, size)? })
    }

    fn file(&self, path: &[u8], follow: bool) -> Result<File, Failure> {
        let path = of(path);
        Ok(if follow { self.fs.open_file(path)? } else { self.fs.open_no_follow(path)? })
    }
}

fn of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

fn bytes<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, text)
}

/// A name with the status of its file.
type Named<'py> = (Bound<'py, PyBytes>, Status);

#[pymethods]
impl FileSystem {
    /// Whether it was opened for changes.
    #[getter]
    fn writable(&self) -> bool {
        self.fs.is_writable()
    }

    /// The names in a directory with the status of each file.
    fn entries<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Vec<Named<'py>>> {
        let read = || -> Result<Vec<(Vec<u8>, Status)>, Failure> {
            let entries = self.fs.read_dir(of(path))?.map(|entry| {
                let entry = entry?;
                Ok((entry.file_name().as_bytes().to_vec(), Status::of(entry.metadata())))
            });
            entries.collect()
        };
        let entries = py.detach(read).map_err(failed)?;
        Ok(entries.into_iter().map(|(name, status)| (bytes(py, &name), status)).collect())
    }

    /// All that is below a directory: paths with the status of each file.
    fn below<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Vec<Named<'py>>> {
        let read = || -> Result<Vec<(Vec<u8>, Status)>, Failure> {
            let named = |entry: WalkEntry| {
                (entry.path().as_os_str().as_bytes().to_vec(), Status::of(entry.metadata()))
            };
            self.fs.walk(of(path))?.map(|entry| Ok(named(entry?))).collect()
        };
        let entries = py.detach(read).map_err(failed)?;
        Ok(entries.into_iter().map(|(path, status)| (bytes(py, &path), status)).collect())
    }

    #[pyo3(signature = (path, *, follow=true))]
    fn status(&self, py: Python<'_>, path: &[u8], follow: bool) -> PyResult<Status> {
        let look = || match follow {
            true => self.fs.metadata(of(path)),
            false => self.fs.symlink_metadata(of(path)),
        };
        py.detach(|| look().map(|known| Status::of(&known))).map_err(failed)
    }

    /// Opens a file. `create` makes one of this mode where there is none, `new` wants that there is none.
    #[pyo3(signature = (path, *, create=false, new=false, mode=0o644))]
    fn open(
        &self,
        py: Python<'_>,
        path: &[u8],
        create: bool,
        new: bool,
        mode: u16,
    ) -> PyResult<OpenFile> {
        let opened = || -> Result<File, Failure> {
            if new {
                let place = self.fs.place(of(path))?;
                let (directory, name) = (place.directory().number(), place.name());
                let made =
                    self.fs.nodes().create(directory, name, &NewFile::new(mode), Existing::Refuse);
                return Ok(made.map_err(|error| place.failed(error))?.1);
            }
            match create {
                true => Ok(self.fs.create_file(of(path), &NewFile::new(mode))?),
                false => self.file(path, true),
            }
        };
        py.detach(opened).map(OpenFile::new).map_err(failed)
    }

    fn create_dir(&self, py: Python<'_>, path: &[u8], parents: bool) -> PyResult<()> {
        py.detach(|| match parents {
            true => self.fs.create_dir_all(of(path)),
            false => self.fs.create_dir(of(path)),
        })
        .map_err(failed)
    }

    fn remove_file(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        py.detach(|| self.fs.remove_file(of(path))).map_err(failed)
    }

    fn remove_dir(&self, py: Python<'_>, path: &[u8], all: bool) -> PyResult<()> {
        py.detach(|| match all {
            true => self.fs.remove_dir_all(of(path)),
            false => self.fs.remove_dir(of(path)),
        })
        .map_err(failed)
    }

    fn rename(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<()> {
        py.detach(|| self.fs.rename(of(from), of(to), RenameFlags::REPLACE)).map_err(failed)
    }

    fn hard_link(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<()> {
        py.detach(|| self.fs.hard_link(of(from), of(to))).map_err(failed)
    }

    fn symlink(&self, py: Python<'_>, target: &[u8], path: &[u8]) -> PyResult<()> {
        py.detach(|| self.fs.symlink(of(target), of(path))).map_err(failed)
    }

    fn read_link<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let target = py.detach(|| self.fs.read_link(of(path))).map_err(failed)?;
        Ok(bytes(py, &target.into_os_string().into_vec()))
    }

    /// Copies content and permissions of a file; blocks are shared where the volume can.
    fn copy(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<u64> {
        py.detach(|| self.fs.copy(of(from), of(to))).map_err(failed)
    }

    /// Changes permissions, owner, group and times (nanoseconds since 1970) of a file.
    #[pyo3(signature = (path, *, follow=true, mode=None, uid=None, gid=None, accessed=None, modified=None))]
    #[expect(clippy::too_many_arguments, reason = "each has its name in Python")]
    fn change(
        &self,
        py: Python<'_>,
        path: &[u8],
        follow: bool,
        mode: Option<u16>,
        uid: Option<u32>,
        gid: Option<u32>,
        accessed: Option<i128>,
        modified: Option<i128>,
    ) -> PyResult<()> {
        let time = |time: Option<i128>| match time.map(timestamp) {
            None => Ok(None),
            Some(Some(time)) => Ok(Some(SetTime::To(time))),
            Some(None) => Err(failed(Failure::Value("a time that cannot be".into()))),
        };
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        let change = Change { mode, uid, gid, accessed, modified, ..Change::default() };
        py.detach(|| -> Result<(), Failure> {
            self.file(path, follow)?.set_attributes(&change)?;
            Ok(())
        })
        .map_err(failed)
    }

    fn list_xattrs<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
        follow: bool,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let list = || -> Result<Vec<Vec<u8>>, Failure> {
            Ok(self.fs.nodes().list_xattrs(self.file(path, follow)?.number())?)
        };
        let names = py.detach(list).map_err(failed)?;
        Ok(names.iter().map(|name| bytes(py, name)).collect())
    }

    /// The value of an attribute; `None` if there is none of the name.
    fn get_xattr<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
        name: &[u8],
        follow: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let get = || -> Result<Option<Vec<u8>>, Failure> {
            Ok(self.fs.nodes().get_xattr(self.file(path, follow)?.number(), name)?)
        };
        let value = py.detach(get).map_err(failed)?;
        Ok(value.map(|value| bytes(py, &value)))
    }

    fn set_xattr(
        &self,
        py: Python<'_>,
        path: &[u8],
        name: &[u8],
        value: &[u8],
        follow: bool,
    ) -> PyResult<()> {
        let set = || -> Result<(), Failure> {
            let number = self.file(path, follow)?.number();
            Ok(self.fs.nodes().set_xattr(number, name, value, SetMode::Either)?)
        };
        py.detach(set).map_err(failed)
    }

    /// Removes an attribute; says whether there was one.
    fn remove_xattr(
        &self,
        py: Python<'_>,
        path: &[u8],
        name: &[u8],
        follow: bool,
    ) -> PyResult<bool> {
        let remove = || -> Result<bool, Failure> {
            Ok(self.fs.nodes().remove_xattr(self.file(path, follow)?.number(), name)?)
        };
        py.detach(remove).map_err(failed)
    }

    /// Bytes of a block, blocks and free blocks, inodes and free inodes.
    fn usage(&self, py: Python<'_>) -> PyResult<(u32, u64, u64, u64, u64)> {
        let usage = py.detach(|| self.fs.statfs()).map_err(failed)?;
        let (blocks, inodes) = (usage.blocks, usage.inodes);
        Ok((usage.block_size, blocks, usage.free_blocks, inodes, usage.free_inodes))
    }

    /// Makes everything durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.fs.sync_and_wait()).map_err(failed)
    }

    /// Writes everything back and ends it: later calls fail.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.fs.close()).map_err(failed)
    }
}
