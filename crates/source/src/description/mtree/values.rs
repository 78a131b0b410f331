//! Values of the keywords of mtree(5).

use super::super::error::DescriptionProblem;
use super::super::escape::unvis;
use super::super::{device_of_number, path};
use crate::{Device, EntryPath, ModeChange, Timestamp};

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Block,
    Char,
    Directory,
    Fifo,
    File,
    Link,
    Socket,
}

/// What a tag begins with that names of one file share.
pub(crate) const NAMES_TAG: &str = "names-of:";

pub(super) fn kind(value: &[u8]) -> Result<Type, DescriptionProblem> {
    Ok(match value {
        b"block" => Type::Block,
        b"char" => Type::Char,
        b"dir" => Type::Directory,
        b"fifo" => Type::Fifo,
        b"file" => Type::File,
        b"link" => Type::Link,
        b"socket" => Type::Socket,
        _ => {
            let reason = "write block, char, dir, fifo, file, link or socket";
            return Err(DescriptionProblem::value("type", value, reason));
        }
    })
}

pub(super) fn mode(value: &[u8]) -> Result<ModeChange, DescriptionProblem> {
    let parsed = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    let reason = "write octal digits up to 7777, or letters such as u=rwx,go=rx";
    parsed.ok_or_else(|| DescriptionProblem::value("mode", value, reason))
}

pub(super) fn text(field: &'static str, value: &[u8]) -> Result<Vec<u8>, DescriptionProblem> {
    let reason = "a backslash is followed by nothing that vis(3) writes";
    unvis(value).ok_or_else(|| DescriptionProblem::value(field, value, reason))
}

pub(super) fn decimal(value: &[u8]) -> Option<u64> {
    let is_decimal = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_decimal.then(|| std::str::from_utf8(value).ok()?.parse().ok()).flatten()
}

pub(super) fn narrow(field: &'static str, value: &[u8]) -> Result<u32, DescriptionProblem> {
    let number = decimal(value).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| DescriptionProblem::value(field, value, "write a number of 32 bits"))
}

/// Seconds, and behind a point the nanoseconds, which are a number and no fraction.
pub(in super::super) fn time(value: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(value).ok()?;
    let (seconds, nanoseconds) = text.split_once('.').unwrap_or((text, "0"));
    let nanoseconds = decimal(nanoseconds.as_bytes()).filter(|count| *count < 1_000_000_000)?;
    // Less than 2^32.
    Some(Timestamp { seconds: seconds.parse().ok()?, nanoseconds: nanoseconds as u32 })
}

/// `FORMAT,MAJOR,MINOR`, or the number that systems with glibc have.
pub(super) fn device(value: &[u8]) -> Result<Device, DescriptionProblem> {
    let reason = "write native,MAJOR,MINOR, or a number";
    let wrong = || DescriptionProblem::value("device", value, reason);
    let numbers: Option<Vec<u64>> = std::str::from_utf8(value).ok().and_then(|text| {
        let words = text.split(',').skip(usize::from(text.contains(',')));
        words.map(c_number).collect()
    });
    let narrow = |number: &u64| u32::try_from(*number).map_err(|_| wrong());
    match numbers.as_deref() {
        Some([number]) if !value.contains(&b',') => Ok(device_of_number(*number)),
        Some([major, minor]) => Ok(Device { major: narrow(major)?, minor: narrow(minor)? }),
        _ => Err(wrong()),
    }
}

/// A number as C has it: hexadecimal behind `0x`, octal behind `0`.
pub(in super::super) fn c_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// Where contents are below the directory of contents, which is the root for a whole path, too.
pub(super) fn contents(value: &[u8]) -> Result<EntryPath, DescriptionProblem> {
    let decoded = text("contents", value)?;
    path::of_components(decoded.split(|&byte| byte == b'/'))
}

pub(super) fn names_tag(value: &[u8]) -> Option<Vec<u8>> {
    let mut tags = value.split(|&byte| byte == b',');
    tags.find(|tag| tag.starts_with(NAMES_TAG.as_bytes())).map(<[u8]>::to_vec)
}
