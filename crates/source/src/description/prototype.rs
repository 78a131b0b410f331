//! The prototype file of `mkfs.xfs -p`: words, with white space between them.
//!
//! A word that begins with a colon is a comment to the end of its line. The first is a name that means
//! nothing, two numbers follow that mean nothing either, then the root. `$` ends a directory.

use super::error::{DescriptionError, DescriptionProblem};
use super::file::{File, Origin};
use super::lines::Lines;
use super::mtree::c_number;
use super::spec::DescriptionOptions;
use super::tree::Draft;
use super::{check_target, path};
use crate::entry::Kind;
use crate::files::{Expected, PartialMetadata};
use crate::{Device, EntryPath};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reads a prototype file to its end.
pub(super) fn read(
    lines: &mut Lines,
    options: &DescriptionOptions,
) -> Result<Draft, Box<DescriptionError>> {
    let mut words = Words { lines, waiting: VecDeque::new(), line: 0 };
    let mut draft = Draft::default();
    let done = read_words(&mut words, options, &mut draft);
    done.map_err(|fault| match fault {
        Fault::Line(error) => error,
        Fault::Word(problem) => words.lines.fault_on(words.line, problem),
    })?;
    Ok(draft)
}

/// A fault, with or without its place.
enum Fault {
    Line(Box<DescriptionError>),
    Word(DescriptionProblem),
}

impl From<Box<DescriptionError>> for Fault {
    fn from(error: Box<DescriptionError>) -> Self {
        Self::Line(error)
    }
}

impl From<DescriptionProblem> for Fault {
    fn from(problem: DescriptionProblem) -> Self {
        Self::Word(problem)
    }
}

/// The words of a file.
struct Words<'a> {
    lines: &'a mut Lines,
    /// Those left of the current line.
    waiting: VecDeque<Vec<u8>>,
    /// The line of the word that came last.
    line: u64,
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<Vec<u8>>, Box<DescriptionError>> {
        loop {
            if let Some(word) = self.waiting.pop_front() {
                self.line = self.lines.number();
                return Ok(Some(word));
            }
            let Some(line) = self.lines.next()? else { return Ok(None) };
            let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            self.waiting.extend(words.take_while(|word| word[0] != b':').map(<[u8]>::to_vec));
        }
    }

    fn wanted(&mut self, what: &'static str) -> Result<Vec<u8>, Fault> {
        match self.next()? {
            Some(word) => Ok(word),
            None => {
                self.line = self.lines.number();
                Err(DescriptionProblem::Truncated(what).into())
            }
        }
    }

    fn number(&mut self, field: &'static str) -> Result<u32, Fault> {
        let word = self.wanted(field)?;
        let number = std::str::from_utf8(&word).ok().and_then(c_number);
        let number = number.and_then(|number| u32::try_from(number).ok());
        let wrong = || DescriptionProblem::value(field, &word, "write a number of 32 bits");
        Ok(number.ok_or_else(wrong)?)
    }
}

fn read_words(
    words: &mut Words<'_>,
    options: &DescriptionOptions,
    draft: &mut Draft,
) -> Result<(), Fault> {
    words.wanted("its first name")?;
    words.number("the number of blocks")?;
    words.number("the number of inodes")?;
    let root = file(words, options, &EntryPath::root())?;
    if root.kind != Kind::Directory {
        return Err(DescriptionProblem::RootNotDirectory.into());
    }
    draft.add_named(&EntryPath::root(), words.line, root)?;
    let mut directory = EntryPath::root();
    loop {
        let mut name = words.wanted("the $ that ends a directory")?;
        if name == b"$" {
            match directory.parent() {
                Some(parent) => directory = parent,
                None => break,
            }
            continue;
        }
        let line = words.line;
        if options.slashes_are_spaces {
            name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b' ');
        } else if name.contains(&b'/') {
            return Err(DescriptionProblem::Slash { name: super::error::cut(&name) }.into());
        }
        let path = path::child(&directory, &name)?;
        let file = file(words, options, &path)?;
        if file.kind == Kind::Directory {
            directory = path.clone();
        }
        draft.add_named(&path, line, file)?;
    }
    match words.next()? {
        Some(word) => {
            let reason = "follows the $ that ends the root; one before it is too many";
            Err(DescriptionProblem::syntax(&word, reason).into())
        }
        None => Ok(()),
    }
}

/// Reads a mode, the owner, and what the kind of a file has.
fn file(
    words: &mut Words<'_>,
    options: &DescriptionOptions,
    path: &EntryPath,
) -> Result<File, Fault> {
    let mode = words.wanted("the mode of a file")?;
    let (letter, mode) = mode_of(&mode)?;
    let (uid, gid) = (words.number("the owner")?, words.number("the group")?);
    let mut origin = Origin::Nowhere;
    let kind = match letter {
        b'd' => Kind::Directory,
        b'p' => Kind::Fifo,
        b'b' | b'c' => {
            let (major, minor) =
                (words.number("the major number")?, words.number("the minor number")?);
            let device = Device { major, minor };
            if letter == b'b' { Kind::BlockDevice(device) } else { Kind::CharDevice(device) }
        }
        b'l' => {
            let target = words.wanted("the target of a symbolic link")?;
            Kind::Symlink(check_target(path.as_bytes(), target)?)
        }
        _ => {
            let contents = words.wanted("the path of the contents of a file")?;
            let named = Path::new(OsStr::from_bytes(&contents));
            origin = if options.contents.is_some() {
                Origin::Below(path::of_components(contents.split(|&byte| byte == b'/'))?)
            } else {
                Origin::Host(named.to_owned())
            };
            Kind::Regular { size: 0, data: Vec::new() }
        }
    };
    // A prototype has no times.
    let mtime = (origin == Origin::Nowhere).then(Default::default);
    let metadata = PartialMetadata { mode: Some(mode), uid: Some(uid), gid: Some(gid), mtime };
    Ok(File { kind, metadata, xattrs: Box::default(), origin, expected: Expected::default() })
}

/// The kind and the permissions in a word such as `d--755` or `-ug777`.
fn mode_of(word: &[u8]) -> Result<(u8, u16), DescriptionProblem> {
    let reason = "write one of - b c d l p, then u or -, then g or -, then three octal digits";
    let wrong = || DescriptionProblem::value("the mode", word, reason);
    let [letter @ (b'-' | b'b' | b'c' | b'd' | b'l' | b'p'), set_uid, set_gid, digits @ ..] = word
    else {
        return Err(wrong());
    };
    let flag = |byte: u8, letter: u8, bits: u16| match byte {
        b'-' => Some(0),
        byte if byte == letter => Some(bits),
        _ => None,
    };
    let is_octal = digits.len() == 3 && digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let permissions =
        is_octal.then(|| digits.iter().fold(0, |sum, digit| sum << 3 | u16::from(digit - b'0')));
    let mode =
        || Some(flag(*set_uid, b'u', 0o4000)? | flag(*set_gid, b'g', 0o2000)? | permissions?);
    Ok((*letter, mode().ok_or_else(wrong)?))
}
