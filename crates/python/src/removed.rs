//! Removed files of a volume.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use undercroft_block::BlockDevice;
use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_recover::{Contents, Disk, FoundFile, Removed};

use crate::disk::{self, Place};
use crate::error::{Failure, failed};
use crate::status::nanoseconds;

/// Removed files, as they were found at one time.
#[pyclass(frozen, module = "undercroft")]
pub(crate) struct RemovedFiles {
    disk: Disk,
    removed: Removed,
}

impl RemovedFiles {
    /// Looks for them in the volume at a place of a disk. A journal that was not replayed is, in memory.
    pub(crate) fn search(whole: Arc<dyn BlockDevice>, place: Place) -> Result<Self, Failure> {
        let device = disk::volume_in(whole, place)?;
        let present = FileSystem::open(Arc::clone(&device), &OpenOptions::default());
        // What can be found without an open volume is found.
        let present = present.map(|fs| Arc::clone(fs.volume().device()));
        let present = present.unwrap_or_else(|_| Arc::clone(&device));
        let disk = Disk::replayed(device, present)?;
        let removed = Removed::find(&disk, &mut |_, _, _| {})?;
        Ok(Self { disk, removed })
    }

    fn file(&self, index: usize) -> Result<&FoundFile, Failure> {
        let file = self.removed.files.get(index);
        file.ok_or_else(|| Failure::Value(format!("there is no file {index}")))
    }
}

/// A removed file. Times are nanoseconds since 1970.
#[pyclass(frozen, get_all, module = "undercroft")]
pub(crate) struct RemovedFile {
    /// From the root; those that do not lead up to it begin with `?/`.
    paths: Vec<OsString>,
    state: &'static str,
    /// Bytes.
    size: u64,
    removed: Option<i128>,
    modified: i128,
    uid: u32,
    gid: u32,
    mode: Option<u32>,
    number: u64,
    generation: u32,
}

impl RemovedFile {
    fn of(file: &FoundFile) -> Self {
        let path = |path: &undercroft_recover::Path| {
            let start: &[u8] = if path.is_complete { b"/" } else { b"?/" };
            OsString::from_vec([start, &path.names.join(&b'/')].concat())
        };
        let kind = file.kind.map_or(0, |kind| u32::from(kind.mode_bits()));
        Self {
            paths: file.paths.iter().map(path).collect(),
            state: file.state.name(),
            size: file.size,
            removed: file.removed_at.map(nanoseconds),
            modified: nanoseconds(file.mtime),
            uid: file.uid,
            gid: file.gid,
            mode: file.mode.map(|mode| u32::from(mode) | kind),
            number: file.id.number.0,
            generation: file.id.generation,
        }
    }
}

#[pymethods]
impl RemovedFiles {
    fn files(&self, py: Python<'_>) -> Vec<RemovedFile> {
        py.detach(|| self.removed.files.iter().map(RemovedFile::of).collect())
    }

    /// The bytes of a file from a place on, at most `count`; what is lost is zeroes.
    fn read<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        offset: u64,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.file(index).map_err(failed)?;
        let there = usize::try_from(file.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        PyBytes::new_with(py, count.min(there), |bytes| {
            py.detach(|| self.fill(file, offset, bytes)).map_err(failed)
        })
    }
}

impl RemovedFiles {
    fn fill(&self, file: &FoundFile, offset: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        let end = offset + bytes.len() as u64;
        let mut contents = Contents::new(&self.disk, file);
        contents.seek(offset);
        while let Some(piece) = contents.next_piece()? {
            let (start, data) = (piece.offset, piece.bytes());
            let (from, to) = (start.max(offset), end.min(start + data.len() as u64));
            if from >= to {
                break;
            }
            bytes[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&data[(from - start) as usize..(to - start) as usize]);
        }
        Ok(())
    }
}
