//! The cost of a run for the process: CPU time and context switches.

use std::ops::Sub;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// CPU time and context switches of all threads of this process, living and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in nanoseconds, user and system.
    pub cpu_ns: u64,
    /// Switches because a thread slept.
    pub voluntary: u64,
    /// Switches because another thread was given the CPU.
    pub involuntary: u64,
}

impl Usage {
    /// The usage since the process began.
    #[must_use]
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_ns = u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_nsec).unwrap_or(0);
        // It fails only for a wrong `who`; without it the switches are unknown, counted as none.
        let (voluntary, involuntary) = getrusage(UsageWho::RUSAGE_SELF).map_or((0, 0), |usage| {
            (usage.voluntary_context_switches(), usage.involuntary_context_switches())
        });
        let count = |switches| u64::try_from(switches).unwrap_or(0);
        Self { cpu_ns, voluntary: count(voluntary), involuntary: count(involuntary) }
    }
}

impl Sub for Usage {
    type Output = Self;

    /// The usage between an earlier point `other` and this one.
    fn sub(self, other: Self) -> Self {
        Self {
            // The kernel scales both parts of it anew each time, so a short one can come out shorter.
            cpu_ns: self.cpu_ns.saturating_sub(other.cpu_ns),
            voluntary: self.voluntary - other.voluntary,
            involuntary: self.involuntary - other.involuntary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn work_takes_cpu_time_and_sleep_takes_switches() {
        let start = Usage::now();
        let mut value = 1_u64;
        while (Usage::now() - start).cpu_ns < 1_000_000 {
            value = std::hint::black_box(value).wrapping_mul(3);
        }
        std::thread::sleep(Duration::from_millis(1));
        let used = Usage::now() - start;
        assert!(used.cpu_ns >= 1_000_000);
        assert!(used.voluntary >= 1);
    }
}
