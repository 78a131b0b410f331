//! Whether the thread of a connection does writes itself.
//!
//! Most take no more than a copy, and no other thread need be woken. A write to a file may wait for
//! the disk all the same, and what the client asks for meanwhile waits with it; so after one that did,
//! other threads have their turn, the longer the more often it happens.

use std::time::Duration;

/// Writes of one batch that take longer have waited for a disk.
const LONG: Duration = Duration::from_millis(5);
/// Writes that are left to other threads after that, at least.
const LEAST: u32 = 64;
/// At most.
const MOST: u32 = 1 << 14;

/// What the last writes of a connection took.
#[derive(Debug)]
pub(super) struct Patience {
    /// Writes that are left to other threads still.
    pause: u32,
    /// Length of the next pause.
    next: u32,
}

impl Patience {
    /// Whether the next write may be done here; asked once for each.
    pub(super) fn suffices(&mut self) -> bool {
        let suffices = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        suffices
    }

    /// Learns how long a batch of writes took that were done here.
    pub(super) fn learn(&mut self, time: Duration) {
        if time >= LONG {
            self.pause = self.next;
            self.next = (2 * self.next).min(MOST);
        } else {
            self.next = (self.next - 1).max(LEAST);
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { pause: 0, next: LEAST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many writes are left to other threads now.
    fn pause(patience: &mut Patience) -> u32 {
        (0..).find(|_| patience.suffices()).unwrap()
    }

    #[test]
    fn pauses_grow_with_writes_that_wait_and_shrink_with_those_that_do_not() {
        let mut patience = Patience::default();
        assert_eq!(pause(&mut patience), 0);
        patience.learn(LONG / 2);
        assert_eq!(pause(&mut patience), 0);
        for expected in [LEAST, 2 * LEAST, 4 * LEAST] {
            patience.learn(LONG);
            assert_eq!(pause(&mut patience), expected);
        }
        (0..8 * LEAST).for_each(|_| patience.learn(LONG / 2));
        patience.learn(LONG);
        assert_eq!(pause(&mut patience), LEAST);
        (0..99).for_each(|_| patience.learn(LONG));
        assert_eq!(pause(&mut patience), MOST);
    }
}
