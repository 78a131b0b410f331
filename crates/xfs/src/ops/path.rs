//! Paths and names in messages.

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
