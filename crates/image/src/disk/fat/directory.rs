//! Entries of a FAT directory.

use super::names::{ShortName, ShortNames, checksum};

/// Bytes of an entry.
const ENTRY: usize = 32;
/// Units of UTF-16 in an entry of a long name, and where they are.
const LONG_UNITS: usize = 13;
const LONG_PLACES: [usize; LONG_UNITS] = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];

const ATTRIBUTE_LABEL: u8 = 0x08;
const ATTRIBUTE_DIRECTORY: u8 = 0x10;
const ATTRIBUTE_LONG_NAME: u8 = 0x0f;
/// 1980-01-01, the first day there is.
const DATE: u16 = 1 << 5 | 1;

/// Bytes of the entries for these names, with those that every directory has. A root has a label
/// instead, and at least one entry that ends it.
pub(super) fn entries_bytes(names: &[String], is_root: bool) -> u64 {
    let mut short = ShortNames::default();
    let own = if is_root { 1 } else { 2 };
    let of_names = names.iter().map(|name| match short.for_name(name) {
        (_, true) => 1,
        (_, false) => 1 + name.encode_utf16().count().div_ceil(LONG_UNITS),
    });
    ((own + of_names.sum::<usize>()) * ENTRY) as u64
}

/// What an entry leads to.
#[derive(Clone, Copy)]
pub(super) struct Leads {
    pub(super) is_directory: bool,
    /// The first cluster; 0 for an empty file and for a root above.
    pub(super) cluster: u32,
    /// Bytes of a file.
    pub(super) length: u32,
}

/// Bytes of a directory on their way.
pub(super) struct Entries {
    bytes: Vec<u8>,
    short: ShortNames,
}

impl Entries {
    /// Those of the root: the label comes first.
    pub(super) fn of_root(label: &ShortName) -> Self {
        let mut entries = Self { bytes: Vec::new(), short: ShortNames::default() };
        entries.push(label, ATTRIBUTE_LABEL, 0, 0);
        entries
    }

    /// Those of another directory at cluster `own`, below the one at `parent`, 0 for the root.
    pub(super) fn of_directory(own: u32, parent: u32) -> Self {
        let mut entries = Self { bytes: Vec::new(), short: ShortNames::default() };
        entries.push(b".          ", ATTRIBUTE_DIRECTORY, own, 0);
        entries.push(b"..         ", ATTRIBUTE_DIRECTORY, parent, 0);
        entries
    }

    /// Adds a name.
    pub(super) fn add(&mut self, name: &str, leads: Leads) {
        let (short, says_all) = self.short.for_name(name);
        if !says_all {
            self.push_long(name, checksum(&short));
        }
        let attributes = if leads.is_directory { ATTRIBUTE_DIRECTORY } else { 0 };
        self.push(&short, attributes, leads.cluster, leads.length);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn push(&mut self, name: &ShortName, attributes: u8, cluster: u32, length: u32) {
        let mut entry = [0; ENTRY];
        entry[..11].copy_from_slice(name);
        entry[11] = attributes;
        for date_at in [16, 18, 24] {
            entry[date_at..date_at + 2].copy_from_slice(&DATE.to_le_bytes());
        }
        let [low, next, high, top] = cluster.to_le_bytes();
        entry[20..22].copy_from_slice(&[high, top]);
        entry[26..28].copy_from_slice(&[low, next]);
        entry[28..32].copy_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&entry);
    }

    /// Adds a long name, its end first.
    fn push_long(&mut self, name: &str, checksum: u8) {
        const LAST: u8 = 0x40;
        let units: Vec<u16> = name.encode_utf16().collect();
        let count = units.len().div_ceil(LONG_UNITS);
        for number in (1..=count).rev() {
            let mut entry = [0; ENTRY];
            // At most 20.
            entry[0] = number as u8 | if number == count { LAST } else { 0 };
            (entry[11], entry[13]) = (ATTRIBUTE_LONG_NAME, checksum);
            let start = (number - 1) * LONG_UNITS;
            for (index, place) in LONG_PLACES.into_iter().enumerate() {
                // One zero ends a name that does not fill its entries.
                let unit = match (start + index).checked_sub(units.len()) {
                    None => units[start + index],
                    Some(0) => 0,
                    Some(_) => 0xffff,
                };
                entry[place..place + 2].copy_from_slice(&unit.to_le_bytes());
            }
            self.bytes.extend_from_slice(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_that_were_planned_are_written() {
        let names = ["EFI", "a name", "exactly thirt", "one that takes three entries all"];
        let names = names.map(str::to_owned);
        let mut entries = Entries::of_root(b"ESP        ");
        for name in &names {
            entries.add(name, Leads { is_directory: false, cluster: 5, length: 7 });
        }
        let bytes = entries.into_bytes();
        assert_eq!(bytes.len() as u64, entries_bytes(&names, true));
        assert_eq!(bytes.len(), (1 + 1 + 2 + 2 + 4) * ENTRY);
        let long = &bytes[2 * ENTRY..3 * ENTRY];
        assert_eq!((long[0], long[11]), (0x41, ATTRIBUTE_LONG_NAME));
        assert_eq!(long[1..5], *b"a\0 \0");
        assert_eq!(long[9..11], *b"m\0");
        // The sixth unit, the end, and what fills up.
        assert_eq!(long[14..20], [b'e', 0, 0, 0, 0xff, 0xff]);
    }
}
