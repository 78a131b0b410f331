//! The directory for files of tests: in memory where there is enough of it. Most of them are
//! volumes that are made, mounted, and gone a second later; a disk would have to store them, and
//! the tests wait. Tests of the drivers for files write beside their programs, to the disk.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

/// The file system in memory.
const MEMORY: &str = "/dev/shm";
/// Bytes that must be free of it, and of the machine's memory: several times those that the tests
/// have used at a time.
const NEEDED: u64 = 12 << 30;
const PREFIX: &str = "undercroft-tests-";

/// A directory in memory; gone when dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes it, unless a directory is named in the environment or there is not enough memory.
    pub(super) fn new() -> Option<Self> {
        if std::env::var_os("TMPDIR").is_some() || free(Path::new(MEMORY)).unwrap_or(0) < NEEDED {
            return None;
        }
        remove_abandoned(Path::new(MEMORY));
        let path = Path::new(MEMORY).join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Bytes that can be written to the file system in memory at `path`.
fn free(path: &Path) -> Option<u64> {
    let there = statvfs(path).ok()?;
    let table = fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some((there.f_bavail * there.f_frsize).min(kib * 1024))
}

/// Removes directories of runs that were killed: their files would fill memory.
fn remove_abandoned(memory: &Path) {
    let entries = fs::read_dir(memory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        if !Path::new("/proc").join(process).exists() {
            // What another user left cannot be removed, and does no harm here.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_processes_that_are_gone_are_removed() {
        let memory = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = memory.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "").unwrap();
            path
        };
        let own = make(format!("{PREFIX}{}", std::process::id()));
        // No process has this number.
        let gone = make(format!("{PREFIX}4294967295"));
        let other = make("others".to_owned());
        remove_abandoned(memory.path());
        assert!(own.exists() && other.exists() && !gone.exists());
    }

    #[test]
    fn free_memory_is_known() {
        assert!(free(Path::new("/dev")).is_some_and(|bytes| bytes < 1 << 50));
    }
}
