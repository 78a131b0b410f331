//! Tar streams.
//!
//! The input is a stream of bytes; where a header's checksum field says so, it is repaired, since
//! no random header has a right one.

use std::io::Cursor;
use undercroft_source::tar::TarReader;
use undercroft_source::{Kind, Options};

const BLOCK: usize = 512;
/// The checksum field of a header.
const CHECKSUM: std::ops::Range<usize> = 148..148 + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 8;
/// What the field holds where it is to be repaired: what an empty field looks like.
const REPAIR: u8 = 0;
/// Entries and bytes an archive may give for each of its own bytes: parents that are not in the
/// archive are delivered too, one for each component of a path.
const ENTRIES_PER_BYTE: usize = 1;

/// An archive with its empty checksums filled in.
#[must_use]
pub fn with_checksums(input: &[u8]) -> Vec<u8> {
    let mut archive = input.to_vec();
    for header in archive.chunks_exact_mut(BLOCK) {
        if header[CHECKSUM.start] == REPAIR && header.iter().any(|byte| *byte != 0) {
            let sum = format!("{:06o}\0 ", checksum(header));
            header[CHECKSUM].copy_from_slice(sum.as_bytes());
        }
    }
    archive
}

/// Empties the checksums of all headers, to be filled in by the target: a header that is changed stays
/// one.
pub(crate) fn open_checksums(archive: &mut [u8]) {
    for header in archive.chunks_exact_mut(BLOCK) {
        let text = String::from_utf8_lossy(&header[CHECKSUM]);
        let said = u32::from_str_radix(text.trim_matches([' ', '\0']), 8);
        if said == Ok(checksum(header)) {
            header[CHECKSUM].fill(REPAIR);
        }
    }
}

/// The sum of the bytes of a header, with spaces in the place of the sum.
fn checksum(header: &[u8]) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    sum(&header[..CHECKSUM.start]) + sum(&[b' '; CHECKSUM_BYTES]) + sum(&header[CHECKSUM.end..])
}

pub(crate) fn run(input: &[u8]) {
    let archive = with_checksums(input);
    let bytes = archive.len();
    let options = Options { strip_absolute: bytes.is_multiple_of(2), ..Options::default() };
    let mut reader = TarReader::new("fuzzed", Cursor::new(archive), &options);
    let (mut entries, mut delivered) = (0, 0);
    loop {
        let entry = match reader.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(error) => return drop(error.to_string()),
        };
        entries += 1;
        assert!(entries <= bytes * ENTRIES_PER_BYTE, "more entries than the archive has bytes");
        let mut end = 0;
        loop {
            let data = match reader.next_data() {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(error) => return drop(error.to_string()),
            };
            let Kind::Regular { size, .. } = entry.kind else { panic!("data of something else") };
            assert!(data.offset >= end, "data is not in order");
            end = data.offset + data.chunk.len() as u64;
            assert!(end <= size, "data behind the end of the file");
            delivered += data.chunk.len();
            assert!(delivered <= bytes, "more data than the archive has bytes");
        }
    }
}
