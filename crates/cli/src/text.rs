//! Words for numbers.

use jiff::Timestamp;
use serde::Serialize;
use std::fmt;
use undercroft_xfs::format::{self, FileType};

/// Bytes in the largest unit that gives at least one, with one digit: `1.5 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = count.checked_ilog2().map(|log| log / 10).filter(|power| *power > 0) else {
        return format!("{count} bytes");
    };
    let value = count as f64 / (1_u64 << (10 * power)) as f64;
    format!("{value:.1} {}", UNITS[power as usize - 1])
}

/// Bytes in few letters, rounded up, as `ls -h` and `du -h` have them: `1.5G`.
pub(crate) fn short_bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    if count < 1024 {
        return count.to_string();
    }
    let mut unit: u64 = 1024;
    for (index, letter) in UNITS.iter().enumerate() {
        let tenths = (u128::from(count) * 10).div_ceil(unit.into());
        if tenths < 100 {
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
        let whole = count.div_ceil(unit);
        if whole < 1024 || index + 1 == UNITS.len() {
            return format!("{whole}{letter}");
        }
        unit <<= 10;
    }
    count.to_string()
}

/// A time in UTC to the nanosecond; one that calendars do not reach as seconds.
pub(crate) fn time(time: format::Timestamp) -> String {
    let nanoseconds = i32::try_from(time.nanoseconds).unwrap_or(i32::MAX);
    Timestamp::new(time.seconds, nanoseconds).map_or_else(
        |_| format!("@{}.{:09}", time.seconds, time.nanoseconds),
        |time| format!("{time:.9}"),
    )
}

/// The ten letters of `ls -l`.
pub(crate) fn mode(kind: FileType, mode: u16) -> String {
    let letter = |bit: u16, yes: char| if mode & bit == 0 { '-' } else { yes };
    let execute = |bit: u16, special: u16, both: char| match (mode & bit != 0, mode & special != 0)
    {
        (true, true) => both,
        (false, true) => both.to_ascii_uppercase(),
        (execute, false) => {
            if execute {
                'x'
            } else {
                '-'
            }
        }
    };
    [
        kind_letter(kind),
        letter(0o400, 'r'),
        letter(0o200, 'w'),
        execute(0o100, 0o4000, 's'),
        letter(0o040, 'r'),
        letter(0o020, 'w'),
        execute(0o010, 0o2000, 's'),
        letter(0o004, 'r'),
        letter(0o002, 'w'),
        execute(0o001, 0o1000, 't'),
    ]
    .iter()
    .collect()
}

fn kind_letter(kind: FileType) -> char {
    match kind {
        FileType::Fifo => 'p',
        FileType::Character => 'c',
        FileType::Directory => 'd',
        FileType::Block => 'b',
        FileType::Regular => '-',
        FileType::Symlink => 'l',
        FileType::Socket => 's',
    }
}

/// A type of file in words.
pub(crate) fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "fifo",
        FileType::Character => "character device",
        FileType::Directory => "directory",
        FileType::Block => "block device",
        FileType::Regular => "regular file",
        FileType::Symlink => "symbolic link",
        FileType::Socket => "socket",
    }
}

/// Bytes in hexadecimal digits, two each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name for JSON: as text where it is text, else with escapes and a mark that says so.
#[derive(Serialize)]
pub(crate) struct Name {
    name: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    escaped: bool,
}

impl Name {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { name: text.to_owned(), escaped: false },
            Err(_) => Self { name: bytes.escape_ascii().to_string(), escaped: true },
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.escaped {
            formatter.write_str(&self.name)
        } else {
            formatter.write_str(&name(self.name.as_bytes()))
        }
    }
}

/// A name for a terminal: UTF-8 as it is; characters that control the terminal, or the order of the
/// text, and all other bytes escaped.
pub(crate) fn name(bytes: &[u8]) -> String {
    let plain = |letter: char| !letter.is_control() && !is_directional(letter) && letter != '\\';
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(plain) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

/// A name as shells read it: as it is, or in quotation marks that bash, zsh, ksh and the shell here know.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let is_text = std::str::from_utf8(bytes).is_ok_and(|text| visible(text) == text);
    if !is_text {
        return format!("$'{}'", bytes.escape_ascii());
    }
    // The text, with its backslashes as they are.
    let text = String::from_utf8_lossy(bytes);
    let is_special =
        |letter: char| letter.is_whitespace() || "\"$`\\*?[](){}<>|&;!#~".contains(letter);
    match () {
        () if text.contains('\'') => {
            format!("$'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        () if text.contains(is_special) || text.is_empty() => format!("'{text}'"),
        () => text.into_owned(),
    }
}

/// The path of a name in a directory.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    [directory, b"/", name].concat()
}

/// Text of others for a terminal: what would control it, or turn the order of the text, as escapes.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_directional(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a character is not seen and turns those around it: with it, one name looks like another.
fn is_directional(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// An extended attribute as JSON.
#[derive(Serialize)]
pub(crate) struct Attribute {
    #[serde(flatten)]
    name: Name,
    bytes: usize,
    hex: String,
}

impl Attribute {
    pub(crate) fn new(name: &[u8], value: &[u8]) -> Self {
        Self { name: Name::new(name), bytes: value.len(), hex: hex(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        for (count, short) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (10 << 10, "10K"),
            ((1 << 20) - 1, "1.0M"),
            (3 << 29, "1.5G"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(short_bytes(count), short);
        }
        let at = |seconds, nanoseconds| format::Timestamp { seconds, nanoseconds };
        assert_eq!(time(at(1, 2)), "1970-01-01T00:00:01.000000002Z");
        assert_eq!(time(at(-1, 5)), "1969-12-31T23:59:59.000000005Z");
        assert_eq!(time(at(i64::MAX, 0)), "@9223372036854775807.000000000");
    }

    #[test]
    fn modes_as_ls_shows_them() {
        assert_eq!(mode(FileType::Regular, 0o4755), "-rwsr-xr-x");
        assert_eq!(mode(FileType::Directory, 0o1766), "drwxrw-rwT");
        assert_eq!(mode(FileType::Socket, 0o2010), "s-----s---");
    }

    #[test]
    fn odd_names_are_quoted() {
        for (bytes, shown) in [
            (&b"/etc/hosts"[..], "/etc/hosts"),
            ("gr\u{fc}n".as_bytes(), "gr\u{fc}n"),
            (b"two words", "'two words'"),
            (b"back\\slash", "'back\\slash'"),
            (b"it's", "$'it\\'s'"),
            (b"caf\xe9", "$'caf\\xe9'"),
            (b"a\nb", "$'a\\nb'"),
            (b"", "''"),
        ] {
            assert_eq!(quoted(bytes), shown);
        }
        assert_eq!(quoted("gpj\u{202e}exe".as_bytes()), "$'gpj\\xe2\\x80\\xaeexe'");
    }

    #[test]
    fn odd_names_are_escaped() {
        assert_eq!(name("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(name(b"a\nb"), "a\\nb");
        assert_eq!(name(b"a\xffb"), "a\\xffb");
        assert_eq!(name(b"a\\b"), "a\\\\b");
        for control in (0x202a..=0x202e).chain(0x2066..=0x2069).chain([0x200e, 0x200f, 0x61c]) {
            let control = char::from_u32(control).unwrap().to_string();
            let shown = name(format!("gpj{control}exe").as_bytes());
            assert!(shown.is_ascii() && shown.starts_with("gpj\\x"), "{shown}");
        }
        // A neighbour of them, and scripts from right to left.
        assert_eq!(name("\u{2065}\u{5d0}\u{627}".as_bytes()), "\u{2065}\u{5d0}\u{627}");
    }
}
