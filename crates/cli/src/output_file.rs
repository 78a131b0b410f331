//! Files that commands write besides volumes: pictures and records.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use undercroft_source::{FOREIGN_HEAD, Foreign, recognise};

/// Writes a file that is not there yet; with `force` also one that is there, unless it holds a
/// volume or a disk. Anything else but a file, such as a pipe, is written to.
pub(crate) fn write(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    check(path, force)?;
    let written = match fs::metadata(path) {
        Ok(_) => fs::write(path, bytes),
        Err(_) => File::create_new(path).and_then(|mut file| file.write_all(bytes)),
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Whether [`write()`] would write.
pub(crate) fn check(path: &Path, force: bool) -> Result<()> {
    if check_no_volume(path)? { check_new(path, force) } else { Ok(()) }
}

/// Fails if there is something at `path`, unless it may be replaced.
pub(crate) fn check_new(path: &Path, force: bool) -> Result<()> {
    if !force && path.symlink_metadata().is_ok() {
        bail!("{}: exists; use --force to replace it", path.display());
    }
    Ok(())
}

/// Fails if there is a volume or a disk at `path`; returns whether there is a regular file.
pub(crate) fn check_no_volume(path: &Path) -> Result<bool> {
    let kind = match fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
    };
    if kind.is_block_device() {
        bail!("{}: is a disk; name a file", path.display());
    }
    if !kind.is_file() {
        return Ok(false);
    }
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FOREIGN_HEAD as u64).read_to_end(&mut head))
        .with_context(|| format!("cannot read {}", path.display()))?;
    if let Some(found) = recognise(&head).filter(Foreign::is_storage) {
        bail!("{}: holds {found}; name another file", path.display());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_go_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("picture.svg");
        write(&path, b"first", false).unwrap();
        assert!(write(&path, b"second", false).unwrap_err().to_string().contains("--force"));
        write(&path, b"second", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");

        let mut disk = vec![0; 1024];
        disk[512..520].copy_from_slice(b"EFI PART");
        let mut boot = vec![0; 512];
        boot[450] = 0x83;
        boot[510..].copy_from_slice(&[0x55, 0xaa]);
        for kept in [&b"XFSB..."[..], &disk, &boot] {
            fs::write(&path, kept).unwrap();
            for force in [false, true] {
                assert!(write(&path, b"third", force).is_err());
            }
            assert_eq!(fs::read(&path).unwrap(), kept);
        }
        assert!(write(directory.path(), b"third", true).is_err());
    }

    #[test]
    fn a_link_to_nothing_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (link, target) = (directory.path().join("link"), directory.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(write(&link, b"first", false).is_err());
        assert!(!target.exists());
    }
}
