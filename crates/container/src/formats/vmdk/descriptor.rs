//! The text that says of what a disk is made.

use crate::obstacle::{Obstacle, damaged, not_supported};

/// Files that a disk may have: each is kept open.
const MAX_EXTENTS: usize = 1024;

/// What a text says.
#[derive(Debug)]
pub(super) struct Descriptor {
    pub(super) extents: Vec<Extent>,
}

/// A part of the disk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) sectors: u64,
    pub(super) kind: Kind,
    /// Its file; nothing for zeroes.
    pub(super) file: String,
    /// The sector of the file with which it begins.
    pub(super) first: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Flat,
    Sparse,
    Zero,
}

impl Descriptor {
    /// Reads a text, behind which zeroes may follow.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Obstacle> {
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let text = String::from_utf8_lossy(&text[..end]);
        let mut parent = None;
        let mut is_child = false;
        let mut extents = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(extent) = Extent::parse(line)? {
                extents.push(extent);
            } else if let Some((name, value)) = line.split_once('=') {
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "parentcid" => is_child = !value.eq_ignore_ascii_case("ffffffff"),
                    "parentfilenamehint" => parent = Some(value.to_owned()),
                    _ => {}
                }
            }
            if extents.len() > MAX_EXTENTS {
                return damaged(format!("it is made of more than {MAX_EXTENTS} files"));
            }
        }
        if is_child {
            let name = parent.unwrap_or_default();
            return not_supported(format!(
                "only the changes to another one, \"{}\"",
                name.escape_debug()
            ));
        }
        Ok(Self { extents })
    }
}

impl Extent {
    /// Reads a line, such as `RW 4192256 SPARSE "disk-s001.vmdk"`; `None` if it is another.
    fn parse(line: &str) -> Result<Option<Self>, Obstacle> {
        let (front, behind) = line.split_once('"').unwrap_or((line, ""));
        let words: Vec<_> = front.split_whitespace().collect();
        let [access @ ("RW" | "RDONLY" | "NOACCESS"), sectors, kind] = words[..] else {
            return Ok(None);
        };
        if access == "NOACCESS" {
            return not_supported("an extent that nobody may read");
        }
        let Ok(sectors) = sectors.parse() else {
            return damaged(format!("an extent of \"{}\" sectors", sectors.escape_debug()));
        };
        let kind = match kind {
            "FLAT" | "VMFS" => Kind::Flat,
            "SPARSE" => Kind::Sparse,
            "ZERO" => Kind::Zero,
            other => {
                return not_supported(format!("an extent of type {}", other.escape_debug()));
            }
        };
        let (file, place) = behind.split_once('"').unwrap_or((behind, ""));
        if file.is_empty() && kind != Kind::Zero {
            return damaged("an extent without a file");
        }
        let first = match place.trim() {
            "" => 0,
            place => match place.parse() {
                Ok(first) => first,
                Err(_) => {
                    return damaged(format!("an extent at sector \"{}\"", place.escape_debug()));
                }
            },
        };
        Ok(Some(Self { sectors, kind, file: file.to_owned(), first }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_a_disk_is_made_of() {
        let text = b"# Disk DescriptorFile\nversion=1\nparentCID=ffffffff\n\
            RW 10 FLAT \"a b.vmdk\" 63\r\nRDONLY 5 SPARSE \"c.vmdk\"\nRW 7 ZERO\n\0\0junk\nRW 1 FLAT";
        let extent = |sectors, kind, file: &str, first| Extent {
            sectors,
            kind,
            file: file.to_owned(),
            first,
        };
        assert_eq!(
            Descriptor::parse(text).unwrap().extents,
            [
                extent(10, Kind::Flat, "a b.vmdk", 63),
                extent(5, Kind::Sparse, "c.vmdk", 0),
                extent(7, Kind::Zero, "", 0)
            ]
        );
    }

    #[test]
    fn what_is_not_read_is_named() {
        for (text, words) in [
            ("parentCID=12345678\nparentFileNameHint=\"up.vmdk\"", "up.vmdk"),
            ("RW 10 SESPARSE \"a\"", "SESPARSE"),
            ("NOACCESS 10 FLAT \"a\"", "nobody"),
            ("RW x FLAT \"a\"", "\"x\" sectors"),
            ("RW 1 FLAT \"a\" y", "sector \"y\""),
            ("RW 1 FLAT", "without a file"),
        ] {
            let obstacle = Descriptor::parse(text.as_bytes()).unwrap_err();
            assert!(
                format!("{obstacle:?}").replace('\\', "").contains(words),
                "{obstacle:?} for {words}"
            );
        }
    }
}
