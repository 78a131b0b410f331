//! The rules for times of access.

use crate::options::AccessTimes;
use std::sync::atomic::{AtomicU8, Ordering};
use undercroft_xfs::format::{InodeCore, InodeFlags, Timestamp};

/// A time of access as old as this is set again: a day.
const OLD_SECONDS: i64 = 24 * 60 * 60;

/// The rule of a file system, which can be another one later.
#[derive(Debug)]
pub(crate) struct AccessRule(AtomicU8);

impl AccessRule {
    const ALL: [AccessTimes; 3] = [AccessTimes::Never, AccessTimes::Relative, AccessTimes::Always];

    pub(crate) fn new(rule: AccessTimes) -> Self {
        Self(AtomicU8::new(rule as u8))
    }

    pub(crate) fn get(&self) -> AccessTimes {
        Self::ALL[usize::from(self.0.load(Ordering::Relaxed))]
    }

    pub(crate) fn set(&self, rule: AccessTimes) {
        self.0.store(rule as u8, Ordering::Relaxed);
    }
}

impl AccessTimes {
    /// The time of access that an inode gets when it is read now, if it gets one.
    pub(crate) fn due(
        self,
        core: &InodeCore,
        now: impl FnOnce() -> Timestamp,
    ) -> Option<Timestamp> {
        if self == Self::Never || core.flags.contains(InodeFlags::NOATIME) {
            return None;
        }
        let now = now();
        let is_due = self == Self::Always
            || core.atime <= core.mtime
            || core.atime <= core.ctime
            || now.seconds.saturating_sub(core.atime.seconds) >= OLD_SECONDS;
        (is_due && now != core.atime).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp { seconds, nanoseconds: 0 }
    }

    fn core(access: i64, change: i64) -> InodeCore {
        InodeCore { atime: at(access), mtime: at(1), ctime: at(change), ..InodeCore::default() }
    }

    #[test]
    fn relative_times_of_access_follow_changes_and_days() {
        let due = |core: InodeCore, now| AccessTimes::Relative.due(&core, || at(now));
        assert_eq!(due(core(5, 5), 9), Some(at(9)), "not read since the change");
        assert_eq!(due(core(6, 5), 9), None);
        assert_eq!(due(core(6, 5), 6 + OLD_SECONDS - 1), None);
        assert_eq!(due(core(6, 5), 6 + OLD_SECONDS), Some(at(6 + OLD_SECONDS)));
        assert_eq!(due(core(5, 5), 5), None, "it is that already");
    }

    #[test]
    fn the_flag_of_an_inode_and_the_option_forbid_them() {
        let now = || at(9);
        let flagged = InodeCore { flags: InodeFlags::NOATIME, ..core(1, 1) };
        assert_eq!(AccessTimes::Always.due(&flagged, now), None);
        assert_eq!(AccessTimes::Never.due(&core(1, 1), now), None);
        assert_eq!(AccessTimes::Always.due(&core(8, 1), now), Some(at(9)));
    }
}
