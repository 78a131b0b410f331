//! The file that file drivers and fio work on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// Bytes written at a time.
const CHUNK: usize = 1 << 20;

/// A file whose every block has been written, so that reads reach the disk and writes need no new
/// blocks.
pub(super) struct TestFile {
    path: PathBuf,
    /// A temporary file, which has no name and is gone with the process, however that ends.
    _temporary: Option<File>,
}

impl TestFile {
    /// The file at `path`, or a temporary one in the present directory, with at least `bytes`
    /// bytes of random contents.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn prepare(path: Option<&Path>, bytes: u64, seed: u64) -> Result<Self, LabError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LabError::File { path, source }
        };
        let (file, path, temporary) = match path {
            Some(path) => {
                let options = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(path);
                (options.map_err(failed(path))?, path.to_owned(), None)
            }
            None => {
                let here = Path::new(".");
                let file = tempfile::tempfile_in(here).map_err(failed(here))?;
                let handle = file.try_clone().map_err(failed(here))?;
                // Where other processes find it, too.
                let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
                (handle, path.into(), Some(file))
            }
        };
        fill(&file, bytes, seed).map_err(failed(&path))?;
        Ok(Self { path, _temporary: temporary })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes all of a regular file anew if it is shorter than `bytes`; a long one is taken as it is.
fn fill(mut file: &File, bytes: u64, seed: u64) -> io::Result<()> {
    let metadata = file.metadata()?;
    // A disk has the contents that it has.
    if !metadata.is_file() || metadata.len() >= bytes {
        return Ok(());
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut chunk = vec![0; CHUNK];
    let mut left = bytes;
    while left > 0 {
        random.fill(&mut chunk);
        let length = left.min(CHUNK as u64) as usize;
        file.write_all(&chunk[..length])?;
        left -= length as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_filled_once_and_a_temporary_one_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        TestFile::prepare(Some(&path), 3000, 1).unwrap();
        let contents = fs::read(&path).unwrap();
        assert_eq!(contents.len(), 3000);
        assert!(contents.iter().any(|&byte| byte != 0));
        TestFile::prepare(Some(&path), 2000, 2).unwrap();
        assert!(fs::read(&path).unwrap() == contents);

        let temporary = TestFile::prepare(None, 512, 1).unwrap();
        assert_eq!(fs::metadata(temporary.path()).unwrap().len(), 512);
        let target = fs::read_link(temporary.path()).unwrap();
        assert!(target.to_string_lossy().ends_with(" (deleted)"), "{}", target.display());
    }
}
