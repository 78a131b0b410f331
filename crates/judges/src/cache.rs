//! The directory for judges that no package of the distribution brings: fetched once, shared by all
//! worktrees.

use std::path::PathBuf;

use crate::{Error, program};

/// `undercroft` in the user's cache directory.
#[must_use]
pub fn directory() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("undercroft")
}

/// The root directory for `cargo install`: its `bin` holds the programs from crates.io.
#[must_use]
pub fn programs() -> PathBuf {
    directory().join("programs")
}

/// The directory of an environment of Python with packages of PyPI: its `bin` holds their programs.
#[must_use]
pub fn python() -> PathBuf {
    directory().join("python")
}

/// The path of a program from crates.io, which `cargo xtask test` installs.
///
/// # Errors
/// It is neither in [`programs`] nor in the path.
pub(crate) fn program(name: &str) -> Result<PathBuf, Error> {
    let installed = programs().join("bin").join(name);
    let found = Some(installed).filter(|path| path.is_file());
    found.or_else(|| program::find(name.as_ref())).ok_or_else(|| Error::Missing {
        program: name.to_owned(),
        remedy: "run `cargo xtask test --only setup`, which installs it from crates.io",
    })
}
