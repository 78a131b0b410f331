//! composefs-dump(5): a line for each name, with eleven fields and the extended attributes.

use super::error::{DescriptionError, DescriptionProblem, cut};
use super::escape::unescape;
use super::file::{File, Origin};
use super::lines::Lines;
use super::mtree::time;
use super::tree::Draft;
use super::{check_target, check_xattrs, device_of_number, path};
use crate::digest::{Algorithm, Digest};
use crate::entry::{Kind, MAX_FILE_SIZE};
use crate::files::{ContentsProblem, Expected, PartialMetadata};
use crate::{EntryPath, Xattr};

/// Bits of a mode that say what the file is.
const KIND_BITS: u32 = 0o170_000;

/// Reads a description to its end.
pub(super) fn read(lines: &mut Lines, has_contents: bool) -> Result<Draft, Box<DescriptionError>> {
    let mut draft = Draft::default();
    while let Some(line) = lines.next()? {
        if line.is_empty() {
            continue;
        }
        let line = line.to_vec();
        take(&mut draft, &line, lines.number(), has_contents)
            .map_err(|problem| lines.fault(problem))?;
    }
    if draft.is_empty() {
        return Err(lines.fault(DescriptionProblem::Truncated("its first line")));
    }
    Ok(draft)
}

/// The fields of a line, one after the other.
struct Fields<'a>(std::slice::Split<'a, u8, fn(&u8) -> bool>);

impl<'a> Fields<'a> {
    fn of(line: &'a [u8]) -> Self {
        Self(line.split(|byte| *byte == b' '))
    }

    fn raw(&mut self, field: &'static str) -> Result<&'a [u8], DescriptionProblem> {
        let reason = "a line has eleven fields, each behind a single space";
        let found = self.0.next().filter(|value| !value.is_empty());
        found.ok_or_else(|| DescriptionProblem::value(field, b"", reason))
    }

    /// A field that may be unset.
    fn optional(&mut self, field: &'static str) -> Result<Option<Vec<u8>>, DescriptionProblem> {
        match self.raw(field)? {
            b"-" => Ok(None),
            value => decoded(field, value).map(Some),
        }
    }

    fn number(&mut self, field: &'static str) -> Result<u64, DescriptionProblem> {
        let value = self.raw(field)?;
        number(value, 10).ok_or_else(|| DescriptionProblem::value(field, value, "write a number"))
    }

    fn narrow(&mut self, field: &'static str) -> Result<u32, DescriptionProblem> {
        let value = self.raw(field)?;
        let number = number(value, 10).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| DescriptionProblem::value(field, value, "write a number of 32 bits"))
    }

    /// Whether the file is another name, and the mode with its kind.
    fn mode(&mut self) -> Result<(bool, u32), DescriptionProblem> {
        let value = self.raw("MODE")?;
        let digits = value.strip_prefix(b"@").unwrap_or(value);
        let mode = number(digits, 8).and_then(|mode| u32::try_from(mode).ok());
        let reason = "write octal digits with the kind of the file, such as 100644";
        let mode = mode.filter(|mode| mode & !(KIND_BITS | 0o7777) == 0);
        let mode = mode.ok_or_else(|| DescriptionProblem::value("MODE", value, reason))?;
        Ok((digits.len() < value.len(), mode))
    }
}

fn number(value: &[u8], radix: u32) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| u64::from_str_radix(std::str::from_utf8(value).ok()?, radix).ok()).flatten()
}

fn decoded(field: &'static str, value: &[u8]) -> Result<Vec<u8>, DescriptionProblem> {
    let reason = "a backslash is followed by none of x and two hexadecimal digits, \\, n, r, t";
    unescape(value).ok_or_else(|| DescriptionProblem::value(field, value, reason))
}

/// A path from the root.
fn absolute(field: &'static str, value: &[u8]) -> Result<EntryPath, DescriptionProblem> {
    if value.first() != Some(&b'/') {
        let reason = "paths of entries begin with a slash";
        return Err(DescriptionProblem::value(field, value, reason));
    }
    path::of_components(value.split(|&byte| byte == b'/'))
}

fn take(
    draft: &mut Draft,
    line: &[u8],
    number: u64,
    has_contents: bool,
) -> Result<(), DescriptionProblem> {
    let mut fields = Fields::of(line);
    let path = absolute("PATH", &decoded("PATH", fields.raw("PATH")?)?)?;
    let size = fields.number("SIZE")?;
    let (is_link, mode) = fields.mode()?;
    fields.number("NLINK")?;
    let (uid, gid) = (fields.narrow("UID")?, fields.narrow("GID")?);
    let device = device_of_number(fields.number("RDEV")?);
    let mtime = fields.raw("MTIME")?;
    let reason = "write seconds since 1970, a point and nanoseconds";
    let mtime = time(mtime).ok_or_else(|| DescriptionProblem::value("MTIME", mtime, reason))?;
    let payload = fields.optional("PAYLOAD")?;
    let content = fields.optional("CONTENT")?;
    let digest = fields.optional("DIGEST")?;
    if is_link {
        let target = payload.ok_or_else(|| {
            DescriptionProblem::value("PAYLOAD", b"-", "a hard link has the path of the file here")
        })?;
        return draft.add_named(&path, number, File::link(absolute("PAYLOAD", &target)?));
    }
    let xattrs = fields.0.map(xattr).collect::<Result<Vec<_>, _>>()?;
    let (mut origin, mut expected) = (Origin::Nowhere, Expected::default());
    let kind = match mode & KIND_BITS {
        0o040_000 => Kind::Directory,
        0o020_000 => Kind::CharDevice(device),
        0o060_000 => Kind::BlockDevice(device),
        0o010_000 => Kind::Fifo,
        0o140_000 => Kind::Socket,
        0o120_000 => Kind::Symlink(check_target(path.as_bytes(), payload.unwrap_or_default())?),
        0o100_000 => {
            origin = self::origin(&path, size, payload, content, has_contents)?;
            expected = Expected { size: Some(size), digests: digests(digest)? };
            Kind::Regular { size: 0, data: Vec::new() }
        }
        _ => {
            let reason = "write the kind of the file too: 100644, 40755, 120777 and so on";
            let shown = format!("{mode:o}");
            return Err(DescriptionProblem::value("MODE", shown.as_bytes(), reason));
        }
    };
    // The low 12 bits.
    let mode = Some((mode & 0o7777) as u16);
    let metadata = PartialMetadata { mode, uid: Some(uid), gid: Some(gid), mtime: Some(mtime) };
    let xattrs = check_xattrs(xattrs)?;
    draft.add_named(&path, number, File { kind, metadata, xattrs, origin, expected })
}

/// Where the contents of a regular file are.
fn origin(
    path: &EntryPath,
    size: u64,
    payload: Option<Vec<u8>>,
    content: Option<Vec<u8>>,
    has_contents: bool,
) -> Result<Origin, DescriptionProblem> {
    let path = || cut(path.as_bytes());
    if size > MAX_FILE_SIZE {
        return Err(DescriptionProblem::FileSize(size));
    }
    match (content, payload) {
        (Some(content), _) if content.len() as u64 == size => Ok(Origin::Inline(content.into())),
        (Some(content), _) => {
            let found = content.len() as u64;
            Err(ContentsProblem::Size { path: path(), expected: size, found }.into())
        }
        (None, Some(_)) if !has_contents => Err(DescriptionProblem::NoContents { path: path() }),
        (None, Some(payload)) => {
            Ok(Origin::Below(path::of_components(payload.split(|&byte| byte == b'/'))?))
        }
        (None, None) if size == 0 => Ok(Origin::Nowhere),
        (None, None) => {
            let what = "has a size, and neither PAYLOAD nor CONTENT";
            Err(DescriptionProblem::Unsaid { path: path(), what })
        }
    }
}

fn digests(digest: Option<Vec<u8>>) -> Result<Vec<Digest>, DescriptionProblem> {
    let Some(digits) = digest else { return Ok(Vec::new()) };
    let reason = "an fs-verity digest has 64 hexadecimal digits";
    match Digest::parse(Algorithm::Verity, &digits) {
        Some(digest) => Ok(vec![digest]),
        None => Err(DescriptionProblem::value("DIGEST", &digits, reason)),
    }
}

fn xattr(text: &[u8]) -> Result<Xattr, DescriptionProblem> {
    let Some(at) = text.iter().position(|&byte| byte == b'=') else {
        let reason = "is no extended attribute, which is NAME=VALUE";
        return Err(DescriptionProblem::syntax(text, reason));
    };
    let (name, value) = (decoded("an attribute", &text[..at])?, &text[at + 1..]);
    Ok(Xattr { name, value: decoded("an attribute", value)? })
}
