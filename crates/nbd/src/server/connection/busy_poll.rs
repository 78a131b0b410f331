//! A look at what comes, for a moment before a thread sleeps.
//!
//! A peer on the same machine answers sooner than a processor wakes that went to sleep with its last
//! thread. Where that does not pay, as over a network, hardly any time is spent on it.

use std::thread;
use std::time::{Duration, Instant};

/// Moments in vain after which it looks seldom.
const MISSES: u32 = 4;
/// Sleeps between two such looks.
const PAUSE: u32 = 64;

/// How well it paid to look, at one connection.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// Moments in vain, one after the other.
    misses: u32,
    /// Sleeps since the last of them.
    sleeps: u32,
}

impl BusyPoll {
    /// [Looks](look_for) for something, or does not where that was in vain; whether it found something.
    ///
    /// # Errors
    /// Those of `look`.
    pub(crate) fn find<E>(
        &mut self,
        moment: Duration,
        look: impl FnMut() -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.misses >= MISSES && self.sleeps < PAUSE {
            self.sleeps += 1;
            return Ok(false);
        }
        self.sleeps = 0;
        let found = look_for(moment, look)?;
        self.misses = if found { 0 } else { self.misses.saturating_add(1) };
        Ok(found)
    }
}

/// Has `look` look again and again until it finds something or `moment` is over; whether it found
/// something. Other threads of the processor run in between.
///
/// # Errors
/// Those of `look`.
pub(crate) fn look_for<E>(
    moment: Duration,
    mut look: impl FnMut() -> Result<bool, E>,
) -> Result<bool, E> {
    let start = Instant::now();
    while !look()? {
        if start.elapsed() >= moment {
            return Ok(false);
        }
        thread::yield_now();
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// How often it looks before each of `sleeps` sleeps.
    fn looks(poll: &mut BusyPoll, sleeps: u32, finds: bool) -> Vec<u32> {
        let count = |_| {
            let mut looks = 0;
            let found: Result<bool, Infallible> = poll.find(Duration::from_micros(20), || {
                looks += 1;
                Ok(finds)
            });
            assert_eq!(found, Ok(finds && looks > 0));
            looks
        };
        (0..sleeps).map(count).collect()
    }

    #[test]
    fn it_looks_seldom_where_nothing_comes_and_always_where_something_does() {
        let mut poll = BusyPoll::default();
        let vain = looks(&mut poll, MISSES + PAUSE + 1, false);
        let (first, rest) = vain.split_at(MISSES as usize);
        assert!(first.iter().all(|looks| *looks > 0));
        assert!(rest[..PAUSE as usize].iter().all(|looks| *looks == 0));
        assert!(rest[PAUSE as usize] > 0);
        assert_eq!(looks(&mut poll, PAUSE, true), [0; PAUSE as usize]);
        assert_eq!(looks(&mut poll, 3, true), [1; 3]);
        assert!(looks(&mut poll, MISSES, false).iter().all(|looks| *looks > 0));
    }
}
