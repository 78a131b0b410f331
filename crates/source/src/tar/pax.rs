//! Extended headers: what the entries after them have beyond their own headers.
//!
//! Records of POSIX.1-2001 (path, linkpath, size, uid, gid, mtime), of star and GNU tar (SCHILY.*,
//! GNU.sparse.*, RHT.security.selinux) and of libarchive (LIBARCHIVE.xattr.*). Records without
//! effect on the entry packed (atime, ctime, uname, charsets, comments) are passed over.

use super::acl;
use super::encoding::{base64, keyword, percent};
use super::error::Problem;
use crate::entry::{MAX_DATA_RANGES, MAX_XATTR_NAME, MAX_XATTR_VALUE};
use crate::{DataRange, Timestamp, Xattr};
use std::collections::BTreeMap;

/// The namespaces of extended attributes in Linux.
const NAMESPACES: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system."];

/// Bytes of a value that are shown in an error.
const SHOWN: usize = 100;

/// What extended headers say about an entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Extensions {
    path: Option<Vec<u8>>,
    link_path: Option<Vec<u8>>,
    /// GNU long names, which count where no record has the name.
    pub(super) long_name: Option<Vec<u8>>,
    pub(super) long_link_name: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) mtime: Option<Timestamp>,
    pub(super) dev_major: Option<u32>,
    pub(super) dev_minor: Option<u32>,
    pub(super) sparse: SparseRecords,
    /// Whether a pax header (not only a GNU long name) came before the entry itself.
    pub(super) is_pax: bool,
    /// Access control lists as text.
    access_list: Option<Vec<u8>>,
    default_list: Option<Vec<u8>>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// There is an access control list of NFS version 4, which no file of Linux's own has.
    has_nfs4_list: bool,
}

/// The record of an access control list of NFS version 4.
const NFS4_LIST: &[u8] = b"SCHILY.acl.ace";

/// What GNU tar says about a sparse file in pax format, versions 0.0, 0.1 and 1.0.
#[derive(Debug, Clone, Default)]
pub(super) struct SparseRecords {
    pub(super) major: Option<u64>,
    pub(super) minor: Option<u64>,
    /// Size of the file with its holes.
    pub(super) real_size: Option<u64>,
    /// The file's name; the header has one that marks the entry as sparse.
    pub(super) name: Option<Vec<u8>>,
    /// The map of versions 0.0 and 0.1.
    pub(super) map: Option<Vec<DataRange>>,
    /// Version 0.0 gives offset and length in separate records.
    offset: Option<u64>,
}

impl Extensions {
    /// Adds the records of a pax header; later records replace earlier ones.
    pub(super) fn apply(&mut self, header: &[u8]) -> Result<(), Problem> {
        let mut at = 0;
        while at < header.len() {
            let (record, key, value) =
                split_record(&header[at..]).ok_or(Problem::PaxRecord { at })?;
            self.apply_record(key, value)?;
            at += record;
        }
        Ok(())
    }

    fn apply_record(&mut self, key: &[u8], value: &[u8]) -> Result<(), Problem> {
        match key {
            b"path" => self.path = present(value),
            b"linkpath" => self.link_path = present(value),
            b"size" => self.size = decimal(key, value)?,
            b"uid" => self.uid = small(key, value)?,
            b"gid" => self.gid = small(key, value)?,
            b"mtime" => self.mtime = timestamp(key, value)?,
            b"SCHILY.devmajor" => self.dev_major = small(key, value)?,
            b"SCHILY.devminor" => self.dev_minor = small(key, value)?,
            b"SCHILY.acl.access" => self.access_list = present(value),
            b"SCHILY.acl.default" => self.default_list = present(value),
            NFS4_LIST => self.has_nfs4_list = !value.is_empty(),
            // What follows has a name made up for it.
            b"GNU.volume.offset" => return Err(Problem::Continuation),
            // The value in the inode has the NUL that the record leaves out.
            b"RHT.security.selinux" => {
                let name = b"security.selinux".to_vec();
                self.set_xattr(name, [value, b"\0"].concat())?;
            }
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    self.set_xattr(keyword(name), value.to_vec())?;
                } else if let Some(name) = key.strip_prefix(b"LIBARCHIVE.xattr.") {
                    let name = percent(name).ok_or_else(|| refused(key, name))?;
                    let value = base64(value).ok_or_else(|| refused(key, value))?;
                    self.set_xattr(name, value)?;
                } else if let Some(field) = key.strip_prefix(b"GNU.sparse.") {
                    self.sparse.apply(field, key, value)?;
                }
            }
        }
        Ok(())
    }

    fn set_xattr(&mut self, name: Vec<u8>, value: Vec<u8>) -> Result<(), Problem> {
        let (name_length, value_length) = (name.len(), value.len());
        let named = (1..=MAX_XATTR_NAME).contains(&name_length) && !name.contains(&0);
        if !named || value_length > MAX_XATTR_VALUE {
            let name = name[..name_length.min(SHOWN)].to_vec();
            return Err(Problem::Xattr { name, name_length, value_length });
        }
        self.xattrs.insert(name, value);
        Ok(())
    }

    /// Takes out the name that replaces that of the header.
    pub(super) fn take_path(&mut self) -> Option<Vec<u8>> {
        self.path.take().or(self.long_name.take())
    }

    /// Takes out the target of a link that replaces that of the header.
    pub(super) fn take_link_path(&mut self) -> Option<Vec<u8>> {
        self.link_path.take().or(self.long_link_name.take())
    }

    /// Takes out the attributes that are in no namespace, as other systems have them; their names.
    pub(super) fn take_foreign(&mut self) -> Vec<Vec<u8>> {
        let has_namespace = |name: &[u8]| NAMESPACES.iter().any(|space| name.starts_with(space));
        let foreign = self.xattrs.keys().filter(|name| !has_namespace(name)).cloned();
        let mut foreign: Vec<_> = foreign.collect();
        for name in &foreign {
            self.xattrs.remove(name);
        }
        if std::mem::take(&mut self.has_nfs4_list) {
            foreign.push(NFS4_LIST.to_vec());
        }
        foreign
    }

    /// The extended attributes, sorted by name; none are left. An access control list in text form
    /// counts only where the binary form is not among them: GNU tar writes both with `--acls
    /// --xattrs`, and its text has names of users instead of numbers.
    pub(super) fn take_xattrs(&mut self) -> Result<Vec<Xattr>, Problem> {
        let lists =
            [(acl::ACCESS, self.access_list.take()), (acl::DEFAULT, self.default_list.take())];
        let mut xattrs = std::mem::take(&mut self.xattrs);
        for (kind, text) in lists {
            if let (Some(text), false) = (text, xattrs.contains_key(kind.xattr))
                && let Some(binary) = acl::to_binary(kind, &text)?
            {
                xattrs.insert(kind.xattr.to_vec(), binary);
            }
        }
        Ok(xattrs.into_iter().map(|(name, value)| Xattr { name, value }).collect())
    }
}

impl SparseRecords {
    fn apply(&mut self, field: &[u8], key: &[u8], value: &[u8]) -> Result<(), Problem> {
        match field {
            b"major" => self.major = decimal(key, value)?,
            b"minor" => self.minor = decimal(key, value)?,
            b"name" => self.name = present(value),
            b"size" | b"realsize" => self.real_size = decimal(key, value)?,
            // Says that a map follows; it is empty for a file that is one hole.
            b"numblocks" => self.map = Some(self.map.take().unwrap_or_default()),
            b"offset" => self.offset = decimal(key, value)?,
            b"numbytes" => {
                let offset = self.offset.take().ok_or_else(|| refused(key, value))?;
                let length = decimal(key, value)?.ok_or_else(|| refused(key, value))?;
                self.push(DataRange { offset, length })?;
            }
            b"map" => {
                self.map = Some(Vec::new());
                let mut numbers = value.split(|&byte| byte == b',').filter(|text| !text.is_empty());
                while let Some(offset) = numbers.next() {
                    let length = numbers.next().ok_or_else(|| refused(key, value))?;
                    let (offset, length) = (decimal(key, offset)?, decimal(key, length)?);
                    let range = offset.zip(length).ok_or_else(|| refused(key, value))?;
                    self.push(DataRange { offset: range.0, length: range.1 })?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, range: DataRange) -> Result<(), Problem> {
        let map = self.map.get_or_insert_default();
        if map.len() >= MAX_DATA_RANGES {
            return Err(Problem::SparseRanges);
        }
        map.push(range);
        Ok(())
    }
}

/// The first record: its length, key and value.
fn split_record(header: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let space = header.iter().take(20).position(|&byte| byte == b' ')?;
    let length = usize::try_from(parse(&header[..space])?).ok()?;
    let record = header.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|&byte| byte == b'=')?;
    (equals > 0).then_some((length, &record[..equals], &record[equals + 1..]))
}

fn parse(digits: &[u8]) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all_digits.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

/// An empty value takes back the earlier one.
fn present(value: &[u8]) -> Option<Vec<u8>> {
    (!value.is_empty()).then(|| value.to_vec())
}

fn refused(key: &[u8], value: &[u8]) -> Problem {
    let key = key[..key.len().min(SHOWN)].escape_ascii().to_string();
    Problem::PaxValue { key, value: value[..value.len().min(SHOWN)].to_vec() }
}

fn decimal(key: &[u8], value: &[u8]) -> Result<Option<u64>, Problem> {
    if value.is_empty() {
        return Ok(None);
    }
    parse(value).map(Some).ok_or_else(|| refused(key, value))
}

fn small(key: &[u8], value: &[u8]) -> Result<Option<u32>, Problem> {
    decimal(key, value)?
        .map(|number| u32::try_from(number).map_err(|_| refused(key, value)))
        .transpose()
}

/// Decimal seconds with a fraction, possibly negative; digits after the ninth are cut off.
fn timestamp(key: &[u8], value: &[u8]) -> Result<Option<Timestamp>, Problem> {
    if value.is_empty() {
        return Ok(None);
    }
    parse_timestamp(value).map(Some).ok_or_else(|| refused(key, value))
}

fn parse_timestamp(value: &[u8]) -> Option<Timestamp> {
    let (negative, magnitude) = match value.strip_prefix(b"-") {
        Some(magnitude) => (true, magnitude),
        None => (false, value),
    };
    let mut parts = magnitude.splitn(2, |&byte| byte == b'.');
    let seconds = i64::try_from(parse(parts.next()?)?).ok()?;
    let fraction = parts.next().unwrap_or_default();
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().map(|digit| u32::from(digit - b'0')).chain(std::iter::repeat(0));
    let nanoseconds = digits.take(9).fold(0, |value, digit| value * 10 + digit);
    Some(match (negative, nanoseconds) {
        (false, _) => Timestamp { seconds, nanoseconds },
        (true, 0) => Timestamp { seconds: -seconds, nanoseconds },
        (true, _) => Timestamp { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(header: &[u8]) -> Result<Extensions, Problem> {
        let mut extensions = Extensions::default();
        extensions.apply(header).map(|()| extensions)
    }

    fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
        let rest = [b" ", key, b"=", value, b"\n"].concat();
        let digits = |length: usize| length.to_string().len();
        let mut length = rest.len() + 1;
        while length < rest.len() + digits(length) {
            length += 1;
        }
        [length.to_string().as_bytes(), &rest].concat()
    }

    #[test]
    fn records_carry_any_bytes() {
        let header = [
            record(b"path", b"a\xff=\n"),
            record(b"uid", b"4294"),
            record(b"SCHILY.xattr.user.x", b"\n\0"),
            record(b"LIBARCHIVE.xattr.user.%41", b"Zm9v"),
            record(b"RHT.security.selinux", b"label"),
            record(b"comment", &[b'c'; 200]),
        ];
        let mut extensions = applied(&header.concat()).unwrap();
        assert_eq!(extensions.path.as_deref(), Some(&b"a\xff=\n"[..]));
        assert_eq!(extensions.uid, Some(4294));
        let xattrs = [
            (&b"security.selinux"[..], &b"label\0"[..]),
            (b"user.A", b"foo"),
            (b"user.x", b"\n\0"),
        ]
        .map(|(name, value)| Xattr { name: name.to_vec(), value: value.to_vec() });
        assert_eq!(extensions.take_xattrs().unwrap(), xattrs);
    }

    #[test]
    fn a_binary_access_control_list_goes_before_one_in_text() {
        let text = record(b"SCHILY.acl.access", b"user::rw-\nuser:joe:r--");
        let binary = record(b"SCHILY.xattr.system.posix_acl_access", b"binary");
        let mut extensions = applied(&[text.clone(), binary].concat()).unwrap();
        assert_eq!(extensions.take_xattrs().unwrap()[0].value, b"binary");
        assert!(matches!(applied(&text).unwrap().take_xattrs(), Err(Problem::Acl { .. })));
    }

    #[test]
    fn an_empty_value_takes_a_record_back() {
        let header = [record(b"path", b"a"), record(b"path", b"")].concat();
        assert_eq!(applied(&header).unwrap().path, None);
    }

    #[test]
    fn malformed_records_are_refused() {
        for header in [
            &b"9 path=a"[..],
            b"11 path=a\n",
            b"8 path=a\n",
            b"x path=a\n",
            b"99999999999999999999 path=a\n",
            b"8 path\n\n",
            b"5 =a\n",
            b"0 path=a\n",
            b"\0\0\0",
        ] {
            assert!(matches!(applied(header), Err(Problem::PaxRecord { .. })), "{header:?}");
        }
        for (key, value) in [("size", "x"), ("uid", "4294967296"), ("mtime", "1e")] {
            let header = record(key.as_bytes(), value.as_bytes());
            assert!(matches!(applied(&header), Err(Problem::PaxValue { .. })), "{key}");
        }
        let long = vec![b'v'; MAX_XATTR_VALUE + 1];
        for (key, value) in [(&b"SCHILY.xattr."[..], &b"v"[..]), (b"SCHILY.xattr.user.x", &long)] {
            assert!(matches!(applied(&record(key, value)), Err(Problem::Xattr { .. })));
        }
    }

    #[test]
    fn times_have_nanoseconds_on_both_sides_of_1970() {
        for (text, seconds, nanoseconds) in [
            ("1.5", 1, 500_000_000),
            ("1700000000.1234567899", 1_700_000_000, 123_456_789),
            ("-1.25", -2, 750_000_000),
            ("-3", -3, 0),
            ("7.", 7, 0),
        ] {
            let expected = Timestamp { seconds, nanoseconds };
            assert_eq!(parse_timestamp(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", ".", "-", "1.x", "--1", "9223372036854775808"] {
            assert_eq!(parse_timestamp(text.as_bytes()), None, "{text}");
        }
    }
}
