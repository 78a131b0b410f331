//! An open file.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use undercroft_fs::{Change, File};

use crate::error::{Failure, failed};
use crate::status::Status;

/// An open file: bytes by their place, without a position of its own.
#[pyclass(frozen, module = "undercroft")]
pub(crate) struct OpenFile {
    file: File,
}

impl OpenFile {
    pub(crate) const fn new(file: File) -> Self {
        Self { file }
    }
}

#[pymethods]
impl OpenFile {
    /// Number of the inode.
    #[getter]
    fn number(&self) -> u64 {
        self.file.number().0
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn status(&self, py: Python<'_>) -> Status {
        py.detach(|| Status::of(&self.file.metadata()))
    }

    /// At most `count` bytes from a place on; fewer at the end of the file.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        // A program may ask for more than there is memory.
        let there = usize::try_from(self.file.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut done = 0;
        let bytes = PyBytes::new_with(py, count.min(there), |bytes| {
            done = py.detach(|| read(&self.file, offset, bytes)).map_err(failed)?;
            Ok(())
        })?;
        // It was cut meanwhile.
        let is_whole = done == bytes.as_bytes().len();
        Ok(if is_whole { bytes } else { PyBytes::new(py, &bytes.as_bytes()[..done]) })
    }

    /// Writes bytes from a place on.
    fn write_at(&self, py: Python<'_>, offset: u64, bytes: &[u8]) -> PyResult<()> {
        py.detach(|| self.file.write_at(offset, bytes)).map_err(failed)
    }

    /// Writes bytes at the end; returns the place behind them.
    fn append(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<u64> {
        let place = py.detach(|| self.file.append(bytes)).map_err(failed)?;
        Ok(place + bytes.len() as u64)
    }

    fn set_len(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        let change = Change { size: Some(size), ..Change::default() };
        py.detach(|| self.file.set_attributes(&change)).map_err(failed)?;
        Ok(())
    }

    /// Makes all of it durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.file.fsync_and_wait()).map_err(failed)
    }

    /// The first byte at or behind a place that is stored, or is in a hole; `None` if there is none.
    fn seek(&self, py: Python<'_>, offset: u64, hole: bool) -> PyResult<Option<u64>> {
        let seek = || if hole { self.file.seek_hole(offset) } else { self.file.seek_data(offset) };
        py.detach(seek).map_err(failed)
    }
}

/// Fills memory from a place on, as far as the file goes.
fn read(file: &File, offset: u64, bytes: &mut [u8]) -> Result<usize, Failure> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(offset + done as u64, &mut bytes[done..])? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}
