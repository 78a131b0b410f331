//! The names in one directory, sorted.

use crate::entry::MAX_NAME;
use rustix::fd::AsFd;
use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// Names in one directory, sorted by bytes, without `.` and `..`. Each costs its bytes and 16 more.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// All names, one after the other, in the order of the file system.
    bytes: Vec<u8>,
    /// Sorted.
    names: Vec<Name>,
}

#[derive(Debug, Clone, Copy)]
struct Name {
    start: usize,
    length: u16,
    kind: FileType,
}

impl Listing {
    /// Reads a directory from its current position. `buffer` is scratch space for the system call.
    pub(super) fn read(fd: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> Result<Self, Errno> {
        let mut listing = Self::default();
        let mut entries = RawDir::new(fd, buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            listing.push(entry.file_name().to_bytes(), entry.file_type())?;
        }
        listing.sort();
        Ok(listing)
    }

    fn push(&mut self, name: &[u8], kind: FileType) -> Result<(), Errno> {
        if name == b"." || name == b".." {
            return Ok(());
        }
        let length = u16::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
        if name.len() > MAX_NAME {
            return Err(Errno::NAMETOOLONG);
        }
        self.names.push(Name { start: self.bytes.len(), length, kind });
        self.bytes.extend_from_slice(name);
        Ok(())
    }

    fn sort(&mut self) {
        let Self { bytes, names } = self;
        let shared = shared(names, bytes);
        // First by the bytes behind those that all names share, which tell most of them apart, as
        // numbers, with the places of the names below.
        let key = |name: &Name| u128::from(key(&name.bytes(bytes)[shared..])) << 64;
        let mut keys: Vec<_> = names.iter().zip(0..).map(|(name, at)| key(name) | at).collect();
        keys.sort_unstable();
        let mut sorted: Vec<_> = keys.iter().map(|key| names[*key as u64 as usize]).collect();
        let mut rest = &mut sorted[..];
        for alike in keys.chunk_by(|left, right| left >> 64 == right >> 64) {
            let (run, behind) = rest.split_at_mut(alike.len());
            run.sort_unstable_by_key(|name| name.bytes(bytes));
            rest = behind;
        }
        *names = sorted;
        bytes.shrink_to_fit();
    }

    /// Name number `index` in sorted order and what the directory says it is (which may be unknown).
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], FileType)> {
        let name = self.names.get(index)?;
        Some((name.bytes(&self.bytes), name.kind))
    }
}

/// How many bytes all names begin with.
fn shared(names: &[Name], bytes: &[u8]) -> usize {
    let Some((first, others)) = names.split_first() else { return 0 };
    let first = first.bytes(bytes);
    others.iter().fold(first.len(), |shared, name| {
        let both = first[..shared].iter().zip(name.bytes(bytes));
        both.take_while(|(first, other)| first == other).count()
    })
}

/// The first bytes as a number, in whose order they are: no name has a zero byte, so a shorter one comes
/// first.
fn key(bytes: &[u8]) -> u64 {
    let mut first = [0; size_of::<u64>()];
    let length = bytes.len().min(first.len());
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

impl Name {
    fn bytes<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        &all[self.start..self.start + usize::from(self.length)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(names: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut listing = Listing::default();
        for name in names {
            listing.push(name, FileType::RegularFile).unwrap();
        }
        listing.sort();
        (0..).map_while(|index| listing.get(index)).map(|(name, _)| name.to_vec()).collect()
    }

    proptest! {
        #[test]
        fn order_does_not_depend_on_the_order_of_the_file_system(
            names in prop::collection::hash_set(prop::collection::vec(47u8.., 1..9), 0..50)
                .prop_map(|set| set.into_iter().collect::<Vec<_>>())
                .prop_flat_map(|names| (Just(names.clone()), Just(names).prop_shuffle()))
        ) {
            let mut expected = names.0.clone();
            expected.sort();
            prop_assert_eq!(&sorted(&names.0), &expected);
            prop_assert_eq!(&sorted(&names.1), &expected);
        }
    }

    #[test]
    fn names_that_begin_alike_are_sorted_by_all_their_bytes() {
        let endings: [&[u8]; 7] = [b"", b"1", b"10", b"12345678", b"123456789", b"2", b"\xff"];
        let names = endings.map(|ending| [b"all-begin-like-this-", ending].concat());
        let mut mixed = names.to_vec();
        mixed.reverse();
        assert_eq!(sorted(&mixed), names);
        // The shortest is what they share.
        assert_eq!(sorted(&[b"aa".to_vec(), b"a".to_vec()]), [&b"a"[..], b"aa"]);
        assert!(sorted(&[]).is_empty());
    }

    #[test]
    fn the_directory_itself_and_its_parent_are_no_entries() {
        assert_eq!(sorted(&[b".".to_vec(), b"..".to_vec(), b"...".to_vec()]), [b"...".to_vec()]);
    }

    #[test]
    fn a_name_that_no_target_can_hold_is_refused() {
        let mut listing = Listing::default();
        let result = listing.push(&[b'a'; 256], FileType::RegularFile);
        assert_eq!(result, Err(Errno::NAMETOOLONG));
    }
}
