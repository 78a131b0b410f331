//! Contents of two regular files.

use std::os::fd::BorrowedFd;

use rustix::io::{Errno, pread};

/// Bytes read at once from each file.
const CHUNK: usize = 256 * 1024;

/// Reads two files side by side, with buffers that are kept from file to file.
pub(super) struct Reader {
    left: Vec<u8>,
    right: Vec<u8>,
    /// Bytes of contents compared so far.
    pub(super) bytes: u64,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { left: vec![0; CHUNK], right: vec![0; CHUNK], bytes: 0 }
    }

    /// The first offset at which the files differ within `ranges`, or `None`.
    pub(super) fn difference(
        &mut self,
        left: BorrowedFd<'_>,
        right: BorrowedFd<'_>,
        ranges: &[(u64, u64)],
    ) -> Result<Option<u64>, Errno> {
        for &(start, end) in ranges {
            let mut offset = start;
            while offset < end {
                let wanted = usize::try_from(end - offset).unwrap_or(CHUNK).min(CHUNK);
                let got = read_full(left, &mut self.left[..wanted], offset)?;
                let other = read_full(right, &mut self.right[..wanted], offset)?;
                if self.left[..got] != self.right[..other] {
                    let same = self.left[..got.min(other)]
                        .iter()
                        .zip(&self.right[..got.min(other)])
                        .take_while(|(left, right)| left == right)
                        .count();
                    return Ok(Some(offset + same as u64));
                }
                self.bytes += got as u64;
                // Both end before the size they state: the caller has compared the sizes, and a
                // range past the end holds nothing.
                if got < wanted {
                    break;
                }
                offset += got as u64;
            }
        }
        Ok(None)
    }
}

/// Reads until `buffer` is full or the file ends.
fn read_full(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match pread(file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
