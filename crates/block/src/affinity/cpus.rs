//! Sets of CPUs, and which of them share a cache.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

/// CPUs by the kernel's numbers; written as in `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// Ascending.
    cpus: Vec<u32>,
}

impl CpuSet {
    /// The set of one CPU.
    #[must_use]
    pub fn only(cpu: u32) -> Self {
        Self { cpus: vec![cpu] }
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.cpus.binary_search(&cpu).is_ok()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().copied()
    }

    /// Number of CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// One of the CPUs, always the same for the same `key`; `None` of an empty set.
    pub(crate) fn pick(&self, key: u32) -> Option<u32> {
        let index = (key as usize).checked_rem(self.cpus.len())?;
        Some(self.cpus[index])
    }

    /// Lets the calling thread run on these CPUs only.
    ///
    /// # Errors
    /// When none of them exists, or the thread may use none of them.
    pub fn pin_current_thread(&self) -> std::io::Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        for cpu in &self.cpus {
            if (*cpu as usize) < rustix::thread::CpuSet::MAX_CPU {
                set.set(*cpu as usize);
            }
        }
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self { cpus }
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.cpus.chunk_by(|one, next| one + 1 == *next);
        for (index, run) in runs.enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match run {
                [only] => write!(f, "{comma}{only}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

/// Why a text is not a set of CPUs.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is not a list of CPUs such as 0-3,8")]
pub struct ParseCpuSetError {
    text: String,
}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut cpus = Vec::new();
            for part in text.trim().split(',').filter(|part| !part.is_empty()) {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
                // No machine has more; a list of the numbers is kept.
                if first > last || last >= 1 << 16 {
                    return None;
                }
                cpus.extend(first..=last);
            }
            Some(cpus.into_iter().collect())
        };
        parse().ok_or_else(|| ParseCpuSetError { text: text.to_owned() })
    }
}

/// The CPUs of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    online: CpuSet,
    /// Groups of CPUs that share their last-level cache; each CPU is in one.
    groups: Vec<CpuSet>,
}

impl Topology {
    /// The topology of this machine, as the kernel shows it when it is first asked for. CPUs of
    /// which it shows nothing are taken as one group.
    pub fn of_machine() -> &'static Self {
        static MACHINE: OnceLock<Topology> = OnceLock::new();
        MACHINE.get_or_init(|| Self::read(Path::new("/sys/devices/system/cpu")))
    }

    fn read(directory: &Path) -> Self {
        let list = |path: &Path| fs::read_to_string(path).ok()?.parse::<CpuSet>().ok();
        let online = list(&directory.join("online"))
            .filter(|online| !online.is_empty())
            .unwrap_or_else(|| CpuSet::only(0));
        let mut groups: Vec<CpuSet> = Vec::new();
        for cpu in online.iter() {
            if groups.iter().any(|group| group.contains(cpu)) {
                continue;
            }
            let caches = directory.join(format!("cpu{cpu}/cache"));
            // Cache levels are numbered upwards; the last one that exists is the largest.
            let shared = (0..8)
                .rev()
                .find_map(|level| list(&caches.join(format!("index{level}/shared_cpu_list"))))
                .unwrap_or_else(|| online.clone());
            let known = |other: &u32| groups.iter().any(|group| group.contains(*other));
            let group = shared.iter().filter(|other| !known(other) && online.contains(*other));
            groups.push(group.chain([cpu]).collect());
        }
        Self { online, groups }
    }

    /// A topology of these groups, each written as a list.
    #[cfg(test)]
    pub(crate) fn of_groups<const N: usize>(groups: [&str; N]) -> Self {
        let groups: Vec<CpuSet> = groups.iter().filter_map(|group| group.parse().ok()).collect();
        Self { online: groups.iter().flat_map(CpuSet::iter).collect(), groups }
    }

    /// The CPUs that run.
    #[must_use]
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The groups of CPUs that share their last-level cache.
    #[must_use]
    pub fn groups(&self) -> &[CpuSet] {
        &self.groups
    }

    /// Whether two CPUs share their last-level cache.
    #[must_use]
    pub fn share_cache(&self, one: u32, other: u32) -> bool {
        one == other || self.groups.iter().any(|group| group.contains(one) && group.contains(other))
    }

    /// The place of a CPU in an order in which those that share a cache are neighbours.
    pub(crate) fn position(&self, cpu: u32) -> Option<usize> {
        self.groups.iter().flat_map(CpuSet::iter).position(|other| other == cpu)
    }
}

/// The CPU that the calling thread runs on.
pub(crate) fn current_cpu() -> u32 {
    // The kernel numbers CPUs from zero on.
    rustix::thread::sched_getcpu() as u32
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_the_kernel_does() {
        for text in ["", "0", "0-3", "1,3,5-7", "2-3,9"] {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!(set.to_string(), text);
        }
        assert_eq!("3,1-2,2".parse::<CpuSet>().unwrap().to_string(), "1-3");
        for text in ["a", "3-1", "1-", "-", "70000", "1;2"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn groups_are_those_of_the_last_cache() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("online", "0-3,5\n");
        for (cpu, shared) in [(0, "0,2"), (1, "1,3-4"), (5, "5")] {
            write(&format!("cpu{cpu}/cache/index0/shared_cpu_list"), "0\n");
            write(&format!("cpu{cpu}/cache/index3/shared_cpu_list"), shared);
        }
        let topology = Topology::read(directory.path());
        let groups: Vec<String> = topology.groups().iter().map(ToString::to_string).collect();
        assert_eq!(groups, ["0,2", "1,3", "5"]);
        assert!(topology.share_cache(1, 3) && !topology.share_cache(1, 2));
        assert_eq!(topology.position(1), Some(2));
        let unknown = Topology::read(Path::new("/nonexistent"));
        assert_eq!(unknown.groups(), [CpuSet::only(0)]);
    }

    #[test]
    fn this_machine_has_the_cpu_that_runs_the_test() {
        let topology = Topology::of_machine();
        assert!(topology.position(current_cpu()).is_some());
    }
}
