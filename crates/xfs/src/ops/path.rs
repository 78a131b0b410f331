//! Paths inside a volume.

use super::lookup_in_use;
use crate::error::Error;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// The inode at a path from the root directory. Symbolic links are not followed; empty
/// components and `.` stand for the directory itself, `..` for what the volume says.
///
/// # Errors
/// A component does not exist or is no directory; damage; the device failed.
pub fn resolve(volume: &Volume, path: &[u8]) -> Result<InodeNumber, Error> {
    let mut number = volume.geometry().root_inode;
    for name in path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
        let directory = volume.inode(number)?;
        let directory = directory.read();
        number = lookup_in_use(volume, &directory, name)
            .map_err(|error| match error {
                Error::WrongKind { what, kind, .. } => {
                    Error::WrongKind { path: path_text(path), what, kind }
                }
                other => other,
            })?
            .ok_or_else(|| Error::NotFound(path_text(path)))?;
    }
    Ok(number)
}

/// Longest path in a message, in bytes.
const TEXT_MAX: usize = 200;

/// A path or name for a message: bytes outside printable ASCII are escaped, and a long one loses its
/// middle.
#[must_use]
pub fn path_text(path: &[u8]) -> String {
    let escaped = |bytes: &[u8]| bytes.escape_ascii().to_string();
    // The part left out is not escaped first: it may be long.
    if path.len() <= TEXT_MAX {
        let text = escaped(path);
        if text.len() <= TEXT_MAX {
            return text;
        }
    }
    let half = TEXT_MAX / 2 - 2;
    let head = fitting(path.iter(), half);
    let tail = fitting(path.iter().rev(), half);
    [&escaped(&path[..head]), "...", &escaped(&path[path.len() - tail..])].concat()
}

/// How many of these bytes take up to `len` bytes when they are escaped.
fn fitting<'p>(bytes: impl Iterator<Item = &'p u8>, len: usize) -> usize {
    let mut taken = 0;
    bytes
        .take_while(|byte| {
            taken += std::ascii::escape_default(**byte).len();
            taken <= len
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_loses_its_middle() {
        assert_eq!(path_text(b"/a\n\xff"), "/a\\n\\xff");
        let kept = "/a".repeat(100);
        assert_eq!(path_text(kept.as_bytes()), kept);
        let text = path_text(format!("/first{}/last", "/middle".repeat(1_000_000)).as_bytes());
        assert!(
            text.len() == 199 && text.starts_with("/first/") && text.ends_with("/last"),
            "{text}"
        );
        // No escape is cut in two.
        let text = path_text(&[0xff; 60]);
        assert_eq!(text, ["\\xff".repeat(24), "\\xff".repeat(24)].join("..."));
    }
}
