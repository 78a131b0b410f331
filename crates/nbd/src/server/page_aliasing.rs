//! Whether copies are slow whose destination is a little further in its page than the source in its own.
//!
//! Some processors take the destination for the source of bytes that come later: they look at the lower 12
//! bits of addresses first. Zen 3 then copies a quarter to an eighth of the bytes a second that it copies else,
//! if destination and source are 1 to 31 bytes apart in that sense.

use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use undercroft_block::{BUFFER_ALIGNMENT, Buffer};

/// Where in a page the memory begins that `malloc` of the GNU C library takes from the system.
const MALLOC: usize = 16;
/// Bytes of a copy: half of what a pipe has room for.
const LENGTH: usize = 32 << 10;
/// Copies of each kind, of which the quickest counts.
const ROUNDS: usize = 16;
/// The quick copies are so many times quicker at least.
const FACTOR: u32 = 2;

/// Whether the kernel copies slowly from the beginning of pages to memory of `malloc`, on the processor of the
/// first call, which takes less than a millisecond to find out.
pub(super) fn slows_copies() -> bool {
    static SLOWS: OnceLock<bool> = OnceLock::new();
    // Without a pipe nothing is known, and long reads have none either.
    *SLOWS.get_or_init(|| quickest().is_ok_and(is_slow))
}

/// Whether the first of the two [times](quickest) is that of a slow copy.
fn is_slow([malloc, other]: [Duration; 2]) -> bool {
    malloc > FACTOR * other
}

/// The times of copies to memory of `malloc`, and to other.
fn quickest() -> io::Result<[Duration; 2]> {
    let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let source = Buffer::zeroed(LENGTH);
    let mut memory = Buffer::zeroed(LENGTH + BUFFER_ALIGNMENT);
    let mut quickest = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        for (quickest, at) in quickest.iter_mut().zip([MALLOC, BUFFER_ALIGNMENT / 2]) {
            let written = write(&inlet, &source)?;
            let start = Instant::now();
            let count = read(&outlet, &mut memory[at..at + LENGTH])?;
            *quickest = start.elapsed().min(*quickest);
            if (written, count) != (LENGTH, LENGTH) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    Ok(quickest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_both_kinds_take_their_time() {
        assert!(quickest().unwrap().iter().all(|time| !time.is_zero() && *time < Duration::MAX));
    }

    #[test]
    fn a_copy_is_slow_that_takes_more_than_twice_the_time() {
        let [two, four, five] = [2, 4, 5].map(Duration::from_micros);
        assert!(is_slow([five, two]));
        assert!(!is_slow([four, two]) && !is_slow([two, five]));
    }
}
