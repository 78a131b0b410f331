//! The user's directory for what can be made again.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// The directory of this program in it, which is made; `None` where there is none.
pub(super) fn directory() -> Option<PathBuf> {
    let of =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let all = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")))?;
    let own = all.join("undercroft");
    fs::create_dir_all(&own).ok()?;
    Some(own)
}

/// A file without a name, where there is room for a disk: `/tmp` is often memory.
pub(super) fn temporary_file() -> io::Result<File> {
    match directory().and_then(|directory| tempfile::tempfile_in(directory).ok()) {
        Some(file) => Ok(file),
        None => tempfile::tempfile(),
    }
}
