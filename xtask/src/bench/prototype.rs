//! A prototype file for `mkfs.xfs -p`: the distribution's version takes no directory.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Describes the tree in `directory` in the file `prototype`, whose form xfsprogs document in
/// mkfs.xfs(8).
pub(super) fn write(directory: &Path, prototype: &Path) -> Result<()> {
    let file = File::create(prototype)
        .with_context(|| format!("cannot create {}", prototype.display()))?;
    let mut out = BufWriter::new(file);
    // A boot image, and sizes that xfs ignores.
    writeln!(out, "/dev/null\n0 0")?;
    let root = fs::symlink_metadata(directory)?;
    writeln!(out, "{}", ownership('d', &root))?;
    entries(directory, &mut out)?;
    writeln!(out, "$")?;
    out.into_inner().context("cannot finish the prototype file")?.sync_all()?;
    Ok(())
}

fn entries(directory: &Path, out: &mut impl Write) -> Result<()> {
    let list =
        fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in list {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let metadata = entry.metadata()?;
        word(out, &name)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            writeln!(out, " {}", ownership('d', &metadata))?;
            entries(&path, out)?;
            writeln!(out, "$")?;
        } else if kind.is_symlink() {
            write!(out, " {} ", ownership('l', &metadata))?;
            word(out, fs::read_link(&path)?.as_os_str())?;
            writeln!(out)?;
        } else if kind.is_file() {
            write!(out, " {} ", ownership('-', &metadata))?;
            word(out, path.as_os_str())?;
            writeln!(out)?;
        } else if kind.is_fifo() {
            writeln!(out, " {}", ownership('p', &metadata))?;
        } else {
            bail!("{}: a prototype for this kind of file is not needed so far", path.display());
        }
    }
    Ok(())
}

/// Kind, permissions and owner: `d--755 0 0`.
fn ownership(kind: char, metadata: &fs::Metadata) -> String {
    let mode = metadata.mode();
    let set_uid = if mode & 0o4000 == 0 { '-' } else { 'u' };
    let set_gid = if mode & 0o2000 == 0 { '-' } else { 'g' };
    format!("{kind}{set_uid}{set_gid}{:03o} {} {}", mode & 0o777, metadata.uid(), metadata.gid())
}

/// One word of the file; it has no way to write white space in a name.
fn word(out: &mut impl Write, text: &OsStr) -> Result<()> {
    if text.as_bytes().iter().any(u8::is_ascii_whitespace) {
        bail!("{}: a prototype file cannot hold white space", text.display());
    }
    Ok(out.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_tree_is_described() {
        let scratch = tempfile::tempdir().unwrap();
        let tree = scratch.path().join("tree");
        fs::create_dir_all(tree.join("inner")).unwrap();
        fs::write(tree.join("inner/file"), "x").unwrap();
        fs::set_permissions(tree.join("inner/file"), fs::Permissions::from_mode(0o4750)).unwrap();
        symlink("file", tree.join("inner/link")).unwrap();
        let prototype = scratch.path().join("prototype");
        write(&tree, &prototype).unwrap();
        let text = fs::read_to_string(&prototype).unwrap();
        let file = tree.join("inner/file");
        assert!(text.starts_with("/dev/null\n0 0\nd--"), "{text}");
        assert!(text.contains("file -u-750 "), "{text}");
        assert!(text.contains(&format!(" {}\n", file.display())), "{text}");
        assert!(text.contains("link l--777 "), "{text}");
        assert!(text.ends_with("$\n$\n"), "{text}");
    }

    #[test]
    fn white_space_is_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        let tree = scratch.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("two words"), "").unwrap();
        let error = write(&tree, &scratch.path().join("prototype")).unwrap_err().to_string();
        assert!(error.contains("white space"), "{error}");
    }
}
