//! A file of Python as a device.

use std::fmt;
use std::io;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use undercroft_block::{
    BlockDevice, Drive, Driver, Failure as RequestFailure, Leaf, OpenError, Operation,
    QueueContext, QueueOptions, Request, SECTOR_SIZE, Sector, Synchronous,
};

use crate::error::failed;

/// Zeroes that are written at a time, where a range is to read as such.
const ZEROES: usize = 64 << 10;

/// The driver. A file has one position, so that requests are done in turn, by one thread; each takes the
/// lock of the interpreter, which the thread that waits has released.
struct PythonFile {
    file: Py<PyAny>,
    name: String,
    capacity: Sector,
    read_only: bool,
}

/// Starts a device on a file of Python.
pub(crate) fn open(
    py: Python<'_>,
    file: Py<PyAny>,
    read_only: bool,
) -> PyResult<Arc<dyn BlockDevice>> {
    let bound = file.bind(py);
    let bytes: u64 = bound.call_method1("seek", (0, 2))?.extract()?;
    let name = bound.getattr("name").and_then(|name| name.extract::<String>());
    let driver = PythonFile {
        name: name.unwrap_or_else(|_| "a file of Python".into()),
        capacity: Sector(bytes / SECTOR_SIZE),
        read_only,
        file,
    };
    let queue = QueueOptions { drive: Drive::Threads(1), ..QueueOptions::default() };
    let leaf = py.detach(|| Leaf::start(driver, queue)).map_err(failed)?;
    Ok(Arc::new(leaf))
}

impl PythonFile {
    fn transfer(&self, py: Python<'_>, request: &mut Request) -> PyResult<()> {
        let file = self.file.bind(py);
        let (offset, length) = (request.sector().0 * SECTOR_SIZE, request.length());
        match request.operation() {
            Operation::Read => {
                file.call_method1("seek", (offset,))?;
                for part in request.scatter() {
                    read_part(file, part)?;
                }
            }
            Operation::Write => {
                file.call_method1("seek", (offset,))?;
                for part in request.gather() {
                    write_part(file, part)?;
                }
            }
            Operation::WriteZeroes => {
                file.call_method1("seek", (offset,))?;
                let zeroes = vec![0; ZEROES];
                let mut left = length;
                while left > 0 {
                    let count = left.min(ZEROES as u64);
                    write_part(file, &zeroes[..count as usize])?;
                    left -= count;
                }
            }
            // Advice.
            Operation::Discard => {}
            Operation::Flush => flush(file)?,
            // The limits say that there are none.
            Operation::CloneRange => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        }
        if request.is_force_unit_access() { flush(file) } else { Ok(()) }
    }
}

/// Fills memory from the position on. A file that ends before, or gives more than it was asked for, lies.
fn read_part(file: &Bound<'_, PyAny>, part: &mut [u8]) -> PyResult<()> {
    let mut done = 0;
    while done < part.len() {
        let wanted = part.len() - done;
        let bytes = file.call_method1("read", (wanted,))?;
        let bytes: &[u8] = bytes.extract()?;
        if bytes.is_empty() || bytes.len() > wanted {
            let what = format!("read({wanted}) gave {} bytes", bytes.len());
            return Err(io::Error::other(what).into());
        }
        part[done..done + bytes.len()].copy_from_slice(bytes);
        done += bytes.len();
    }
    Ok(())
}

fn write_part(file: &Bound<'_, PyAny>, part: &[u8]) -> PyResult<()> {
    let mut done = 0;
    while done < part.len() {
        let rest = PyBytes::new(file.py(), &part[done..]);
        let count: usize = file.call_method1("write", (rest,))?.extract()?;
        if count == 0 || count > part.len() - done {
            let what = format!("write of {} bytes took {count}", part.len() - done);
            return Err(io::Error::other(what).into());
        }
        done += count;
    }
    Ok(())
}

/// Hands everything over; a file of this machine goes on to its disk.
fn flush(file: &Bound<'_, PyAny>) -> PyResult<()> {
    file.call_method0("flush")?;
    if let Ok(descriptor) = file.call_method0("fileno") {
        file.py().import("os")?.call_method1("fsync", (descriptor,))?;
    }
    Ok(())
}

impl Driver for PythonFile {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), RequestFailure>> {
        let done = Python::attach(|py| {
            self.transfer(py, request).map_err(|error| io::Error::other(error.to_string()))
        });
        Some(done.map_err(RequestFailure::from))
    }
}

impl fmt::Debug for PythonFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonFile").field("name", &self.name).finish_non_exhaustive()
    }
}
