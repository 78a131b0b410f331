//! XFS volumes for Python. What people use is `undercroft/__init__.py`; here is what it calls, path by
//! path as bytes, with the interpreter's lock released in every call that may wait.

mod error;

// A file of Python as a device; the volume in a disk.
mod disk;
mod python_file;

mod status;

mod open_file;

mod file_system;
mod removed;

use std::path::PathBuf;

use pyo3::prelude::*;
use undercroft_xfs::check::{CheckOptions, Severity, check as check_volume};

use disk::Place;
use error::{Failure, failed};
use file_system::FileSystem;
use open_file::OpenFile;
use removed::{RemovedFile, RemovedFiles};
use status::Status;

/// Opens the volume in a disk: a description of a device as the command takes it.
#[pyfunction]
fn open_image(
    py: Python<'_>,
    image: &str,
    raw: bool,
    place: Place,
    writable: bool,
    replay: bool,
) -> PyResult<FileSystem> {
    let open = || FileSystem::in_disk(disk::open(image, !writable, raw)?, place, writable, replay);
    py.detach(open).map_err(failed)
}

/// Opens the volume in a file of Python: anything with `seek` and `read`, and `write` and `flush` if it is
/// to be changed.
#[pyfunction]
fn open_object(
    py: Python<'_>,
    file: Py<PyAny>,
    place: Place,
    writable: bool,
    replay: bool,
) -> PyResult<FileSystem> {
    let disk = python_file::open(py, file, !writable)?;
    py.detach(|| FileSystem::in_disk(disk, place, writable, replay)).map_err(failed)
}

/// Looks for removed files of the volume in a disk.
#[pyfunction]
fn deleted(py: Python<'_>, image: &str, raw: bool, place: Place) -> PyResult<RemovedFiles> {
    py.detach(|| RemovedFiles::search(disk::open(image, true, raw)?, place)).map_err(failed)
}

/// Whether a volume is clean, and what was found: whether it is an error, and words.
type Checked = (bool, Vec<(bool, String)>);

/// Checks the volume in a disk.
#[pyfunction]
fn check(py: Python<'_>, image: &str, raw: bool, place: Place) -> PyResult<Checked> {
    let look = || -> Result<Checked, Failure> {
        let device = disk::volume_in(disk::open(image, true, raw)?, place)?;
        let mut found = Vec::new();
        let report = check_volume(device, &CheckOptions::default(), &mut |finding| {
            found.push((finding.severity == Severity::Error, finding.to_string()));
        })?;
        Ok((report.is_clean(), found))
    };
    py.detach(look).map_err(failed)
}

/// Makes a file of `size` bytes with an empty volume in it, and opens that for changes.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "the interpreter hands it over")]
fn format(py: Python<'_>, path: PathBuf, size: u64) -> PyResult<FileSystem> {
    py.detach(|| FileSystem::format(&path, size)).map_err(failed)
}

/// Panics on purpose, so that a test can see that no panic crosses the border.
#[cfg(debug_assertions)]
#[pyfunction]
fn panic() {
    panic!("asked for");
}

/// The module.
#[pymodule]
fn undercroft_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<FileSystem>()?;
    module.add_class::<OpenFile>()?;
    module.add_class::<RemovedFile>()?;
    module.add_class::<RemovedFiles>()?;
    module.add_class::<Status>()?;
    module.add_function(wrap_pyfunction!(deleted, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(open_image, module)?)?;
    module.add_function(wrap_pyfunction!(open_object, module)?)?;
    #[cfg(debug_assertions)]
    module.add_function(wrap_pyfunction!(panic, module)?)?;
    module.add_function(wrap_pyfunction!(format, module)?)
}
