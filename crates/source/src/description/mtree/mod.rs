//! mtree(5), as bsdtar, FreeBSD's and NetBSD's mtree write it.
//!
//! Names without a slash are in the current directory, which `..` leaves; names with one are from the
//! root, whatever begins them. A later line about a path goes before an earlier one.

mod keywords;
mod settle;
mod values;

pub(crate) use values::NAMES_TAG;
pub(super) use values::{c_number, time};

use super::contents::Contents;
use super::error::{DescriptionError, DescriptionProblem};
use super::escape::unvis;
use super::ignored::Ignored;
use super::lines::{LINE_MAX, Lines};
use super::path;
use super::tree::{Draft, in_order};
use crate::EntryPath;
use keywords::Keywords;
use settle::Settling;
use values::Type;

/// A line about an entry.
struct Line {
    path: EntryPath,
    number: u64,
    /// In a place of their own, which is given back when the line is taken.
    keywords: Box<Keywords>,
}

/// Where the reader is.
#[derive(Default)]
struct Reader {
    defaults: Keywords,
    /// The current directory.
    directory: EntryPath,
    /// A path from the root came.
    is_full: bool,
    lines: Vec<Line>,
}

/// Reads a description to its end.
pub(super) fn read(
    lines: &mut Lines,
    contents: Option<&mut Contents>,
    ignored: &mut Ignored,
) -> Result<Draft, Box<DescriptionError>> {
    let mut reader = Reader::default();
    let mut joined = Vec::new();
    let mut first = 0;
    while let Some(line) = lines.next()? {
        let is_continued = ends_with_backslash(line);
        joined.extend_from_slice(&line[..line.len() - usize::from(is_continued)]);
        if first == 0 {
            first = lines.number();
        }
        if joined.len() > LINE_MAX {
            return Err(lines.fault(DescriptionProblem::LineLength(LINE_MAX)));
        }
        if is_continued {
            joined.push(b' ');
            continue;
        }
        reader.take(&joined, first, ignored).map_err(|problem| lines.fault(problem))?;
        joined.clear();
        first = 0;
    }
    if first != 0 {
        return Err(lines.fault(DescriptionProblem::Truncated("the end of a line")));
    }
    if reader.lines.is_empty() {
        return Err(lines.fault(DescriptionProblem::Truncated("its first name")));
    }
    let merged = reader.merged().map_err(|(line, problem)| lines.fault_on(line, problem))?;
    let mut settling = Settling::new(contents, ignored, merged.len());
    for Line { path, number, keywords } in merged {
        settling
            .take(&path, number, *keywords)
            .map_err(|problem| lines.fault_on(number, problem))?;
    }
    Ok(settling.finish())
}

/// Whether the next line goes on with this one: an odd number of backslashes ends it.
fn ends_with_backslash(line: &[u8]) -> bool {
    line.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

impl Reader {
    fn take(
        &mut self,
        line: &[u8],
        number: u64,
        ignored: &mut Ignored,
    ) -> Result<(), DescriptionProblem> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(name) = words.next().filter(|name| name[0] != b'#') else { return Ok(()) };
        match name {
            b"/set" => {
                return words.try_for_each(|word| self.defaults.apply(word, number, ignored));
            }
            b"/unset" => {
                words.for_each(|word| self.defaults.unset(word));
                return Ok(());
            }
            b".." => return self.leave(),
            [b'/', ..] => {
                let reason = "is neither /set nor /unset, and paths are relative: write ./NAME";
                return Err(DescriptionProblem::syntax(name, reason));
            }
            _ => {}
        }
        let mut keywords = Box::new(self.defaults.clone());
        words.try_for_each(|word| keywords.apply(word, number, ignored))?;
        let path = self.path(name)?;
        let Some(kind) = keywords.kind else {
            let what = if name.contains(&b'=') {
                "has no type; if mtree -D wrote this, which puts paths last, write it with mtree -C"
            } else {
                "has no type; write type=file, type=dir and so on, or a line with /set before it"
            };
            return Err(DescriptionProblem::Unsaid { path: super::error::cut(name), what });
        };
        if kind == Type::Directory && !name.contains(&b'/') {
            self.directory = path.clone();
        }
        self.lines.push(Line { path, number, keywords });
        Ok(())
    }

    fn leave(&mut self) -> Result<(), DescriptionProblem> {
        let reason = "leaves the root of the tree; there is one too many";
        let parent = self.directory.parent();
        self.directory = parent.ok_or_else(|| DescriptionProblem::syntax(b"..", reason))?;
        Ok(())
    }

    /// The path of a name as it is spelled.
    fn path(&mut self, name: &[u8]) -> Result<EntryPath, DescriptionProblem> {
        let decoded = |name: &[u8]| {
            let reason = "has a backslash that is followed by nothing that vis(3) writes";
            unvis(name)
                .ok_or_else(|| DescriptionProblem::Name { name: super::error::cut(name), reason })
        };
        if name == b"." {
            return Ok(EntryPath::root());
        }
        if name.contains(&b'/') {
            self.is_full = true;
            let components = name.split(|&byte| byte == b'/').map(decoded);
            return path::of_components(components.collect::<Result<Vec<_>, _>>()?);
        }
        if self.is_full {
            let reason = "has no slash, and follows paths that have one: programs differ about its \
                          directory; write all paths from the root, as mtree -C does";
            return Err(DescriptionProblem::Name { name: super::error::cut(name), reason });
        }
        path::child(&self.directory, &decoded(name)?)
    }

    /// The lines in the order of paths, those about one path as one.
    fn merged(mut self) -> Result<Vec<Line>, (u64, DescriptionProblem)> {
        // Numbers keep the order of lines about one path; a stable sort would need more memory.
        self.lines.sort_unstable_by(|one, other| {
            in_order(one.path.as_bytes(), other.path.as_bytes()).then(one.number.cmp(&other.number))
        });
        let mut fault = None;
        self.lines.dedup_by(|line, earlier| {
            if line.path != earlier.path {
                return false;
            }
            if line.keywords.kind != earlier.keywords.kind && fault.is_none() {
                let path = line.path.as_bytes().to_vec();
                let problem = DescriptionProblem::Duplicate { path, first: earlier.number };
                fault = Some((line.number, problem));
            }
            let keywords = std::mem::take(&mut line.keywords);
            *earlier.keywords = keywords.over(std::mem::take(&mut *earlier.keywords));
            earlier.number = line.number;
            true
        });
        fault.map_or(Ok(self.lines), Err)
    }
}
