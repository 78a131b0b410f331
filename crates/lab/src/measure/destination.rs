//! Where experiments on files run.

use std::fs;
use std::path::{Path, PathBuf};

/// Where files are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Destination {
    /// A volume of ours in this file; one of so many bytes is made if there is no such file.
    Image(PathBuf, u64),
    /// A directory of a mounted file system.
    Directory(PathBuf),
}

/// Type of the file system that a directory is on, as the kernel calls it.
pub(crate) fn mounted_kind(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let directory = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let mut fields = mounts.lines().map(|line| line.split_whitespace().skip(1));
    let holding = fields.by_ref().filter_map(|mut of| Some((of.next()?, of.next()?)));
    let best =
        holding.filter(|(path, _)| directory.starts_with(path)).max_by_key(|(path, _)| path.len());
    best.map_or_else(|| "unknown".into(), |(_, kind)| kind.to_owned())
}
