//! Values in rules.

use super::error::RuleProblem;
use crate::EntryPath;
use crate::entry::{MAX_NAME, MAX_PATH, MAX_SYMLINK_TARGET, MAX_XATTR_NAME, MAX_XATTR_VALUE};
use std::ops::RangeInclusive;

type Parsed<T> = Result<T, RuleProblem>;

fn wrong(text: &str) -> RuleProblem {
    RuleProblem::Value(text.to_owned())
}

/// `UID:GID`, `UID` or `:GID`.
pub(super) fn owner(text: &str) -> Parsed<(Option<u32>, Option<u32>)> {
    let error = || wrong("an owner is UID:GID, UID or :GID, in numbers (names depend on a host)");
    let number = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| error()),
    };
    let (uid, gid) = text.split_once(':').unwrap_or((text, ""));
    let owner = (number(uid)?, number(gid)?);
    if owner == (None, None) { Err(error()) } else { Ok(owner) }
}

/// Numbers of owners, and others that they become. All are looked up as they were before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OwnerMap {
    users: Vec<Shift>,
    groups: Vec<Shift>,
}

/// Consecutive numbers, and what the first of them becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shift {
    from: RangeInclusive<u32>,
    to: u32,
}

impl OwnerMap {
    /// `[u:|g:]FROM:TO[:COUNT]`, several separated by commas.
    pub(super) fn parse(text: &str) -> Parsed<Self> {
        let mut map = Self::default();
        for part in text.split(',') {
            let (lists, numbers) = match (part.strip_prefix("u:"), part.strip_prefix("g:")) {
                (Some(rest), _) => (vec![&mut map.users], rest),
                (_, Some(rest)) => (vec![&mut map.groups], rest),
                _ => (vec![&mut map.users, &mut map.groups], part),
            };
            let shift = shift(numbers).ok_or_else(|| {
                RuleProblem::Value(format!(
                    "{part} is no mapping; write FROM:TO or FROM:TO:COUNT with numbers below 2^32, \
                     with u: or g: before for users or groups alone, such as 100000:0:65536"
                ))
            })?;
            for list in lists {
                let meets = |other: &Shift| {
                    shift.from.start() <= other.from.end() && other.from.start() <= shift.from.end()
                };
                if list.iter().any(meets) {
                    return Err(RuleProblem::Value(format!(
                        "{part} maps numbers that a part before maps, too"
                    )));
                }
                list.push(shift.clone());
            }
        }
        Ok(map)
    }

    pub(super) fn user(&self, id: u32) -> u32 {
        mapped(&self.users, id)
    }

    pub(super) fn group(&self, id: u32) -> u32 {
        mapped(&self.groups, id)
    }
}

fn mapped(list: &[Shift], id: u32) -> u32 {
    let shift = list.iter().find(|shift| shift.from.contains(&id));
    // The parser has made sure that all results are numbers.
    shift.map_or(id, |shift| shift.to + (id - shift.from.start()))
}

fn shift(text: &str) -> Option<Shift> {
    let mut numbers = text.split(':').map(str::parse::<u32>);
    let (from, to) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let count = numbers.next().unwrap_or(Ok(1)).ok()?;
    let further = count.checked_sub(1)?;
    to.checked_add(further)?;
    let from = from..=from.checked_add(further)?;
    numbers.next().is_none().then_some(Shift { from, to })
}

/// `NAME=VALUE`; a value that begins with `0x` is in hexadecimal digits.
pub(super) fn xattr(word: &[u8]) -> Parsed<(Vec<u8>, Vec<u8>)> {
    let Some(at) = word.iter().position(|&byte| byte == b'=') else {
        return Err(wrong(
            "an extended attribute is NAME=VALUE, or NAME=0x and hexadecimal digits",
        ));
    };
    let (name, value) = (&word[..at], &word[at + 1..]);
    let spaces: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system."];
    let known = spaces.iter().any(|space| name.len() > space.len() && name.starts_with(space));
    if !known || name.len() > MAX_XATTR_NAME || name.contains(&0) {
        return Err(wrong(
            "the name of an extended attribute begins with user., trusted., security. or system., \
             and has at most 255 bytes",
        ));
    }
    let value = match value.strip_prefix(b"0x") {
        Some(digits) => hexadecimal(digits)
            .ok_or_else(|| wrong("write two hexadecimal digits for each byte behind 0x"))?,
        None => value.to_vec(),
    };
    if value.len() > MAX_XATTR_VALUE {
        return Err(wrong("the value of an extended attribute has at most 65536 bytes"));
    }
    Ok((name.to_vec(), value))
}

fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        // Two digits are a byte.
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    digits.chunks(2).map(byte).collect()
}

/// `THING:/PATH`, cut at the last `:/`.
pub(super) fn thing_and_path<'a>(word: &'a [u8], form: &str) -> Parsed<(&'a [u8], EntryPath)> {
    let at = word.windows(2).rposition(|pair| pair == b":/").filter(|at| *at > 0);
    let at = at.ok_or_else(|| RuleProblem::Words(form.to_owned()))?;
    Ok((&word[..at], path(&word[at + 1..])?))
}

/// A path in the image, from its root and not the root itself.
pub(super) fn path(word: &[u8]) -> Parsed<EntryPath> {
    let defect = |defect| RuleProblem::Path { path: word.escape_ascii().to_string(), defect };
    if word.first() != Some(&b'/') {
        return Err(defect("must begin with a slash, the root of the image"));
    }
    let mut clean = Vec::with_capacity(word.len());
    for component in word.split(|&byte| byte == b'/') {
        match component {
            b"" | b"." => continue,
            b".." => return Err(defect("has a \"..\" component; write it without")),
            long if long.len() > MAX_NAME => {
                return Err(defect("has a component of more than 255 bytes"));
            }
            _ => {}
        }
        if !clean.is_empty() {
            clean.push(b'/');
        }
        clean.extend_from_slice(component);
    }
    match clean {
        clean if clean.is_empty() => Err(defect("is the root, which is there already")),
        clean if clean.contains(&0) => Err(defect("holds a zero byte")),
        clean if clean.len() > MAX_PATH => Err(defect("is too long")),
        clean => Ok(EntryPath::from_checked(clean)),
    }
}

/// The target of a symbolic link.
pub(super) fn target(word: &[u8]) -> Parsed<Vec<u8>> {
    if word.len() > MAX_SYMLINK_TARGET || word.contains(&0) {
        return Err(wrong(
            "the target of a symbolic link has at most 1023 bytes, none of them zero",
        ));
    }
    Ok(word.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_mapped_by_range_and_looked_up_as_they_were() {
        let map = OwnerMap::parse("0:1000,1000:0,u:100000:5000:10,g:7:8").unwrap();
        assert_eq!(
            [0, 1000, 100_009, 100_010, 7].map(|id| map.user(id)),
            [1000, 0, 5009, 100_010, 7]
        );
        assert_eq!([0, 1000, 100_009, 7].map(|id| map.group(id)), [1000, 0, 100_009, 8]);
        for text in
            ["", "1", "1:2:0", "1:2:3:4", "x:1", "4294967295:0:2", "0:4294967295:2", "1:2,1:3"]
        {
            assert!(OwnerMap::parse(text).is_err(), "{text}");
        }
        assert!(OwnerMap::parse("u:1:2,g:1:3").is_ok() && OwnerMap::parse("0:5:4,3:9").is_err());
    }

    #[test]
    fn owners_attributes_and_paths() {
        assert_eq!(owner("1:2").unwrap(), (Some(1), Some(2)));
        assert_eq!(owner(":2").unwrap(), (None, Some(2)));
        assert_eq!(owner("1").unwrap(), (Some(1), None));
        assert!(owner("").is_err() && owner(":").is_err() && owner("root").is_err());
        assert_eq!(xattr(b"user.a=b=c").unwrap(), (b"user.a".to_vec(), b"b=c".to_vec()));
        assert_eq!(xattr(b"user.a=0x00fF").unwrap().1, [0, 255]);
        for text in ["user.a", "foo=1", "user.=1", "user.a=0x0", "user.a=0xgg"] {
            assert!(xattr(text.as_bytes()).is_err(), "{text}");
        }
        let (thing, place) = thing_and_path(b"a:/b:/c/./d//e", "").unwrap();
        assert_eq!((thing, place.as_bytes()), (&b"a:/b"[..], &b"c/d/e"[..]));
        for text in ["a", ":/b", "a:b", "a:/", "a:/../b"] {
            assert!(thing_and_path(text.as_bytes(), "").is_err(), "{text}");
        }
    }
}
