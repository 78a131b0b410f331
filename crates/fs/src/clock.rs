//! Where times come from.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};
use undercroft_xfs::format::Timestamp;

/// What says which time it is when something changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The clock of the system.
    #[default]
    System,
    /// The clock by which the kernel counts times of files. It is some milliseconds coarse, and a time of it
    /// is never behind one that the kernel counts later: for servers of file systems whose kernel counts
    /// some of the times itself.
    Kernel,
    /// It is always this time: the same changes make the same volume.
    Fixed(Timestamp),
}

impl Clock {
    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => timestamp(SystemTime::now()),
            Self::Kernel => {
                let now = clock_gettime(ClockId::RealtimeCoarse);
                // Less than a second.
                Timestamp { seconds: now.tv_sec, nanoseconds: now.tv_nsec as u32 }
            }
            Self::Fixed(time) => *time,
        }
    }
}

/// A time of the system as volumes have it. Times too far away become the nearest there is when
/// they are stored.
#[must_use]
pub fn timestamp(time: SystemTime) -> Timestamp {
    let seconds = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => {
            Timestamp { seconds: seconds(since.as_secs()), nanoseconds: since.subsec_nanos() }
        }
        Err(before) => {
            let before = before.duration();
            let borrow = u32::from(before.subsec_nanos() > 0);
            Timestamp {
                seconds: -seconds(before.as_secs()) - i64::from(borrow),
                nanoseconds: borrow * 1_000_000_000 - before.subsec_nanos(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_before_1970_count_from_the_second_before() {
        let time = timestamp(UNIX_EPOCH - Duration::from_millis(1250));
        assert_eq!(time, Timestamp { seconds: -2, nanoseconds: 750_000_000 });
        let time = timestamp(UNIX_EPOCH - Duration::from_secs(3));
        assert_eq!(time, Timestamp { seconds: -3, nanoseconds: 0 });
        let time = timestamp(UNIX_EPOCH + Duration::from_millis(1250));
        assert_eq!(time, Timestamp { seconds: 1, nanoseconds: 250_000_000 });
    }
}
