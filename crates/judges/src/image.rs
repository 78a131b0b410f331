//! Image files as files: copies that keep holes.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{Error, sparse};

/// Copies the image `from` to `to`, which is made anew, with holes as holes: the cost is that of
/// the data in it.
///
/// # Errors
/// One of the files cannot be opened, read or written.
pub fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    const CHUNK: u64 = 1 << 20;
    let source = File::open(from).map_err(Error::io("cannot open", from))?;
    let size = source.metadata().map_err(Error::io("cannot stat", from))?.len();
    let target = File::create(to).map_err(Error::io("cannot create", to))?;
    target.set_len(size).map_err(Error::io("cannot resize", to))?;
    let mut buffer = Vec::new();
    for (start, end) in sparse::map(source.as_fd(), size).map_err(Error::io("cannot map", from))? {
        let mut at = start;
        while at < end {
            let length = (end - at).min(CHUNK);
            buffer.resize(usize::try_from(length).unwrap_or(0), 0);
            source.read_exact_at(&mut buffer, at).map_err(Error::io("cannot read", from))?;
            target.write_all_at(&buffer, at).map_err(Error::io("cannot write", to))?;
            at += length;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn data_and_holes_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let file = File::create(&from).unwrap();
        file.set_len(1 << 30).unwrap();
        file.write_all_at(&vec![7; 3 << 20], 5 << 20).unwrap();
        file.write_all_at(b"end", (1 << 30) - 3).unwrap();
        copy(&from, &to).unwrap();
        let options = crate::tree::Options::default();
        let other = tempfile::tempdir().unwrap();
        std::fs::hard_link(&to, other.path().join("x")).unwrap();
        assert!(to.metadata().unwrap().blocks() < 8 << 11);
        assert_eq!(to.metadata().unwrap().len(), 1 << 30);
        let left = tempfile::tempdir().unwrap();
        std::fs::hard_link(&from, left.path().join("x")).unwrap();
        let found = crate::tree::compare(left.path(), other.path(), &options).unwrap();
        assert!(
            found.differences.iter().all(|found| found.field == crate::tree::Field::Mtime),
            "{found}"
        );
    }
}
