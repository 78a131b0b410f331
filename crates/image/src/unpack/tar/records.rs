//! Records of extended headers.

use std::fmt::Write as _;
use std::ops::Range;
use undercroft_xfs::format::{Acl, AclKind, Timestamp};

/// Bytes of a tar block.
pub(super) const BLOCK: u64 = 512;

/// The records of one extended header, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
}

impl Records {
    /// Adds a record: its own length in decimal, a space, the key, "=", the value, a line end.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        // The length counts its own digits: one more when they make it longer.
        while rest + digits(length) != length {
            length = rest + digits(length);
        }
        self.bytes.extend(length.to_string().bytes());
        self.bytes.push(b' ');
        self.bytes.extend(key);
        self.bytes.push(b'=');
        self.bytes.extend(value);
        self.bytes.push(b'\n');
    }

    /// Adds a number.
    pub(super) fn number(&mut self, key: &str, value: u64) {
        self.add(key.as_bytes(), value.to_string().as_bytes());
    }

    /// Adds an extended attribute. A key ends at its first "=", so GNU tar writes that one, and the
    /// escape itself, with an escape.
    pub(super) fn attribute(&mut self, name: &[u8], value: &[u8]) {
        let mut key = b"SCHILY.xattr.".to_vec();
        for byte in name {
            match byte {
                b'=' => key.extend(b"%3D"),
                b'%' => key.extend(b"%25"),
                other => key.push(*other),
            }
        }
        self.add(&key, value);
    }

    /// Adds an access control list as text, as GNU tar and bsdtar read it with their option for lists.
    pub(super) fn access_list(&mut self, kind: AclKind, list: &Acl) {
        let key: &[u8] = match kind {
            AclKind::Access => b"SCHILY.acl.access",
            AclKind::Default => b"SCHILY.acl.default",
        };
        let entries: Vec<_> = list.entries().iter().map(ToString::to_string).collect();
        self.add(key, entries.join(",").as_bytes());
    }

    /// Adds a time with its fraction; before 1970 both parts are negative.
    pub(super) fn time(&mut self, key: &str, time: Timestamp) {
        let text = match (time.seconds, time.nanoseconds) {
            (seconds, nanoseconds) if seconds < 0 && nanoseconds > 0 => {
                let fraction = 1_000_000_000_u32.saturating_sub(nanoseconds);
                format!("-{}.{fraction:09}", (seconds + 1).unsigned_abs())
            }
            (seconds, nanoseconds) => format!("{seconds}.{nanoseconds:09}"),
        };
        self.add(key.as_bytes(), text.as_bytes());
    }

    /// All records.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn digits(number: usize) -> usize {
    // Not zero, and at most 20 digits.
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Records that mark a sparse file, and the map that is stored before its data.
pub(super) fn sparse(path: &[u8], size: u64, ranges: &[Range<u64>]) -> (Records, Vec<u8>) {
    let mut records = Records::default();
    records.number("GNU.sparse.major", 1);
    records.number("GNU.sparse.minor", 0);
    records.add(b"GNU.sparse.name", &[b"./", path].concat());
    records.number("GNU.sparse.realsize", size);
    // A hole at the end is an empty range there.
    let end = (ranges.last().is_none_or(|last| last.end < size)).then_some(size..size);
    let mut map = format!("{}\n", ranges.len() + usize::from(end.is_some()));
    for range in ranges.iter().chain(end.as_ref()) {
        // Writing to a string cannot fail.
        let _ = write!(map, "{}\n{}\n", range.start, range.end - range.start);
    }
    let mut map = map.into_bytes();
    map.resize(map.len().next_multiple_of(BLOCK as usize), 0);
    (records, map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        for (value, prefix) in
            [(0, "5 a="), (4, "9 a="), (5, "11 a="), (93, "99 a="), (94, "101 a=")]
        {
            let mut records = Records::default();
            records.add(b"a", &vec![b'x'; value]);
            let text = String::from_utf8(records.bytes().to_vec()).unwrap();
            assert!(text.starts_with(prefix), "{text}");
            assert_eq!(text.len(), prefix.split(' ').next().unwrap().parse::<usize>().unwrap());
        }
    }

    #[test]
    fn times_and_attributes() {
        let mut records = Records::default();
        records.time("t", Timestamp { seconds: -2, nanoseconds: 750_000_000 });
        records.time("t", Timestamp { seconds: -3, nanoseconds: 0 });
        records.attribute(b"user.a=%", b"\0\n");
        let expected = b"18 t=-1.250000000\n18 t=-3.000000000\n32 SCHILY.xattr.user.a%3D%25=\0\n\n";
        assert_eq!(records.bytes().escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn a_sparse_map_is_padded_and_ends_at_the_size() {
        let one = std::slice::from_ref;
        let (_, map) = sparse(b"f", 100, one(&(10..20)));
        assert_eq!(map.len(), 512);
        assert!(map.starts_with(b"2\n10\n10\n100\n0\n\0"));
        let (_, map) = sparse(b"f", 20, one(&(10..20)));
        assert!(map.starts_with(b"1\n10\n10\n\0"));
    }
}
