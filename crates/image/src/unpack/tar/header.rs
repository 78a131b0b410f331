//! Headers of members: what fits a ustar header goes there, the rest into an extended header before
//! it.

use super::records::{BLOCK, Records};
use std::io::{self, Write};
use undercroft_xfs::format::{InodeCore, Timestamp};

/// Bytes of a name or link target in a header.
const NAME: usize = 100;
/// Largest number in a field of seven octal digits.
const OCTAL_7: u64 = 0o777_7777;
/// Largest number in a field of eleven octal digits.
const OCTAL_11: u64 = 0o777_7777_7777;

/// The kind of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Regular,
    /// A regular file whose records say where its data belongs.
    Sparse,
    HardLink,
    Symlink,
    Character,
    Block,
    Directory,
    Fifo,
}

impl Kind {
    fn flag(self) -> u8 {
        match self {
            Self::Regular | Self::Sparse => b'0',
            Self::HardLink => b'1',
            Self::Symlink => b'2',
            Self::Character => b'3',
            Self::Block => b'4',
            Self::Directory => b'5',
            Self::Fifo => b'6',
        }
    }
}

/// A member of the archive.
pub(super) struct Member<'a> {
    pub(super) path: &'a [u8],
    pub(super) kind: Kind,
    /// Target of a link, empty for all others.
    pub(super) target: &'a [u8],
    /// Bytes that follow.
    pub(super) stored: u64,
    pub(super) core: &'a InodeCore,
    pub(super) device: Option<(u32, u32)>,
}

impl Member<'_> {
    /// Writes the headers; `records` are the first ones of the extended header.
    pub(super) fn write(&self, mut records: Records, output: &mut dyn Write) -> io::Result<()> {
        let mut header = Header::new(self.kind.flag());
        let path = if self.kind == Kind::Sparse {
            // The name is in the records; programs that do not know them see this one.
            header.text(0, b"./GNUSparseFile.0/sparse");
            None
        } else {
            Some(self.path)
        };
        if let Some(path) = path.filter(|path| !header.text(0, path)) {
            records.add(b"path", path);
        }
        if !header.text(157, self.target) {
            records.add(b"linkpath", self.target);
        }
        header.octal(100, 7, u64::from(self.core.mode & 0o7777));
        let numbers = [("uid", 108, u64::from(self.core.uid)), ("gid", 116, self.core.gid.into())];
        for (key, at, number) in numbers {
            if number > OCTAL_7 {
                records.number(key, number);
            } else {
                header.octal(at, 7, number);
            }
        }
        if self.stored > OCTAL_11 {
            records.number("size", self.stored);
        } else {
            header.octal(124, 11, self.stored);
        }
        match self.core.mtime {
            Timestamp { seconds, nanoseconds: 0 } if (0..=OCTAL_11 as i64).contains(&seconds) => {
                header.octal(136, 11, seconds.unsigned_abs());
            }
            time => records.time("mtime", time),
        }
        if let Some((major, minor)) = self.device {
            // 14 and 18 bits.
            header.octal(329, 7, major.into());
            header.octal(337, 7, minor.into());
        }
        write_records(&records, output)?;
        output.write_all(&header.finish())
    }
}

/// Writes an extended header, unless there is nothing in it.
fn write_records(records: &Records, output: &mut dyn Write) -> io::Result<()> {
    let bytes = records.bytes();
    if bytes.is_empty() {
        return Ok(());
    }
    let mut header = Header::new(b'x');
    header.text(0, b"././@PaxHeader");
    header.octal(100, 7, 0o644);
    // Far below what eleven digits hold: it was in memory.
    header.octal(124, 11, bytes.len() as u64);
    output.write_all(&header.finish())?;
    output.write_all(bytes)?;
    let missing = bytes.len().next_multiple_of(BLOCK as usize) - bytes.len();
    output.write_all(&[0; BLOCK as usize][..missing])
}

/// A ustar header: fields at fixed offsets.
struct Header([u8; BLOCK as usize]);

impl Header {
    fn new(flag: u8) -> Self {
        let mut header = Self([0; BLOCK as usize]);
        for (at, width) in [(100, 7), (108, 7), (116, 7), (124, 11), (136, 11), (329, 7), (337, 7)]
        {
            header.octal(at, width, 0);
        }
        header.0[156] = flag;
        header.0[257..265].copy_from_slice(b"ustar\x0000");
        header
    }

    /// Puts text into a field of 100 bytes; says whether it fits.
    fn text(&mut self, at: usize, text: &[u8]) -> bool {
        let fits = text.len() <= NAME;
        let text = &text[..text.len().min(NAME)];
        self.0[at..at + text.len()].copy_from_slice(text);
        fits
    }

    /// Puts a number into a field of `width` digits, which it fits, and a terminator.
    fn octal(&mut self, at: usize, width: usize, number: u64) {
        for digit in 0..width {
            // One of eight digits.
            self.0[at + width - 1 - digit] = b'0' + (number >> (3 * digit) & 7) as u8;
        }
    }

    /// The header with its checksum: the sum of all bytes, those of the checksum as spaces.
    fn finish(mut self) -> [u8; BLOCK as usize] {
        self.0[148..156].fill(b' ');
        let sum = self.0.iter().map(|byte| u64::from(*byte)).sum();
        self.octal(148, 6, sum);
        self.0[154] = 0;
        self.0
    }
}
