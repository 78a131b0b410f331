//! Names in FAT: short ones of eight and three characters, long ones of UTF-16.

use std::collections::{HashMap, HashSet};

/// Units of UTF-16 of a long name.
const LONG_MAX: usize = 255;

/// A short name as it is stored: base and extension, filled up with spaces.
pub(super) type ShortName = [u8; 11];

/// Why a name cannot be stored; `None` if it can.
pub(super) fn refused(name: &str) -> Option<String> {
    let forbidden = |letter: char| letter < ' ' || "\"*/:<>?\\|\u{7f}".contains(letter);
    if let Some(letter) = name.chars().find(|letter| forbidden(*letter)) {
        return Some(format!("FAT has no names with {letter:?}"));
    }
    if name.ends_with(['.', ' ']) {
        return Some("FAT has no names that end with a dot or a space".to_owned());
    }
    let units = name.encode_utf16().count();
    (units > LONG_MAX).then(|| format!("the name has {units} units of UTF-16, FAT has {LONG_MAX}"))
}

/// The short names of one directory.
#[derive(Debug, Default)]
pub(super) struct ShortNames {
    taken: HashSet<ShortName>,
    /// The number to try next, by what it stands behind.
    next: HashMap<(Vec<u8>, Vec<u8>), u32>,
}

impl ShortNames {
    /// A short name for `name` that no other has, and whether it says all.
    pub(super) fn for_name(&mut self, name: &str) -> (ShortName, bool) {
        let (base, extension) = match name.rsplit_once('.') {
            Some((base, extension)) if !base.is_empty() => (base, extension),
            _ => (name, ""),
        };
        let (base, extension) = (reduced(base), reduced(extension));
        let extension = extension[..extension.len().min(3)].to_vec();
        let short = joined(&base[..base.len().min(8)], &extension);
        if text(&short) == name && self.taken.insert(short) {
            return (short, true);
        }
        let key = (base[..base.len().min(6)].to_vec(), extension.clone());
        let next = self.next.entry(key).or_insert(1);
        loop {
            // A directory has fewer than 65,536 entries.
            let tail = format!("~{next}");
            *next += 1;
            let kept = base.len().min(8 - tail.len());
            let short = joined(&[&base[..kept], tail.as_bytes()].concat(), &extension);
            if self.taken.insert(short) {
                return (short, false);
            }
        }
    }
}

/// What a short name can hold of a part of a name.
fn reduced(part: &str) -> Vec<u8> {
    let letters = part.chars().filter(|letter| !matches!(letter, ' ' | '.'));
    letters
        .map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() => letter.to_ascii_uppercase() as u8,
            '!' | '#' | '$' | '%' | '&' | '\'' | '(' | ')' | '-' | '@' | '^' | '_' | '`' | '{'
            | '}' => letter as u8,
            _ => b'_',
        })
        .collect()
}

fn joined(base: &[u8], extension: &[u8]) -> ShortName {
    let mut short = [b' '; 11];
    short[..base.len()].copy_from_slice(base);
    short[8..8 + extension.len()].copy_from_slice(extension);
    short
}

/// A short name as people see it.
fn text(short: &ShortName) -> String {
    let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    match (part(&short[..8]), part(&short[8..])) {
        (base, extension) if extension.is_empty() => base,
        (base, extension) => format!("{base}.{extension}"),
    }
}

/// The sum of a short name that its long name carries.
pub(super) fn checksum(short: &ShortName) -> u8 {
    short.iter().fold(0u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_unique_and_say_all_only_where_they_do() {
        let mut names = ShortNames::default();
        for (name, short, says_all) in [
            ("EFI", "EFI", true),
            ("BOOTX64.EFI", "BOOTX64.EFI", true),
            ("grubx64.efi", "GRUBX6~1.EFI", false),
            ("grubx64.efi.signed", "GRUBX6~1.SIG", false),
            ("vmlinuz-6.1.0", "VMLINU~1.0", false),
            ("vmlinuz-6.2.0", "VMLINU~2.0", false),
            ("loader.conf", "LOADER~1.CON", false),
            (".hidden", "HIDDEN~1", false),
            ("\u{fc}ber", "_BER~1", false),
            ("a+b", "A_B~1", false),
            ("A", "A", true),
        ] {
            let (found, all) = names.for_name(name);
            assert_eq!((text(&found).as_str(), all), (short, says_all), "{name}");
        }
        let mut names = ShortNames::default();
        let many: HashSet<_> =
            (0..20_000).map(|number| names.for_name(&format!("file number {number}")).0).collect();
        assert_eq!(many.len(), 20_000);
    }

    #[test]
    fn names_that_fat_does_not_have_are_refused() {
        for name in ["a:b", "what?", "end.", "end ", "tab\t", &"x".repeat(256)] {
            assert!(refused(name).is_some(), "{name}");
        }
        for name in ["a b", "\u{fc}ber", ".config", &"x".repeat(255)] {
            assert_eq!(refused(name), None, "{name}");
        }
    }
}
