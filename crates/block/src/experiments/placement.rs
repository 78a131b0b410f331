//! Where requests are started and where they are answered.

use crate::affinity::{CpuSet, Topology};

/// Where the requests of a device are started and answered; a choice at run time, for each device
/// by [`set_placement`](crate::BlockDevice::set_placement).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Where requests are started, if the submitter has not claimed a hardware queue.
    pub queue: QueuePlace,
    /// Where they are answered.
    pub completion: CompletionPlace,
    /// How a completion that goes to another CPU gets there.
    pub redirect: Redirect,
}

/// Which hardware queue a request goes to, by the CPUs of its threads
/// ([`QueueOptions::thread_cpus`](crate::QueueOptions::thread_cpus)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueuePlace {
    /// That of the group of CPUs to which the submitter's belongs.
    #[default]
    Anywhere,
    /// One whose threads run on these CPUs.
    Cpus(CpuSet),
    /// One whose threads run on the submitter's CPU.
    Submitter,
}

/// On which CPU a request is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompletionPlace {
    /// As `rq_affinity` of Linux says.
    Affinity(RqAffinity),
    /// On one of these CPUs.
    Cpus(CpuSet),
    /// On the CPU that submitted it.
    Submitter,
    /// Where the driver noticed its end.
    #[default]
    Reaper,
}

/// How close to its submitter a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RqAffinity {
    /// 0: where the driver noticed its end.
    Off,
    /// 1: on a CPU that shares the last-level cache with the submitter's.
    Group,
    /// 2: on the CPU of the submitter.
    Cpu,
}

/// How a completion gets to another CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    /// A thread of that CPU sleeps until its list is no longer empty.
    #[default]
    Threads,
    /// The thread of the hardware queue on that CPU, which sleeps in its ring, gets a message from
    /// the ring where the request ended, as an interrupt of one CPU for another. Where there is no
    /// such queue, or its driver has no ring, as [`Threads`](Self::Threads).
    RingMessage,
}

impl CompletionPlace {
    /// The CPU to answer a request on that was submitted on `submitter` and ended `here`; `None`
    /// for here.
    pub(crate) fn target(&self, submitter: u32, here: u32) -> Option<u32> {
        let near = match self {
            Self::Reaper | Self::Affinity(RqAffinity::Off) => return None,
            Self::Submitter | Self::Affinity(RqAffinity::Cpu) => submitter == here,
            Self::Affinity(RqAffinity::Group) => {
                Topology::of_machine().share_cache(submitter, here)
            }
            Self::Cpus(cpus) if cpus.contains(here) => true,
            Self::Cpus(cpus) => return cpus.pick(submitter),
        };
        (!near).then_some(submitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_go_where_they_are_placed() {
        let cpus = CompletionPlace::Cpus([4, 5].into_iter().collect());
        assert_eq!(cpus.target(0, 5), None);
        assert_eq!(cpus.target(0, 1), Some(4));
        assert_eq!(cpus.target(1, 1), Some(5));
        let exact = CompletionPlace::Affinity(RqAffinity::Cpu);
        assert_eq!((exact.target(3, 3), exact.target(3, 2)), (None, Some(3)));
        assert_eq!(CompletionPlace::Submitter.target(3, 2), Some(3));
        assert_eq!(CompletionPlace::Reaper.target(3, 2), None);
        assert_eq!(CompletionPlace::Affinity(RqAffinity::Off).target(3, 2), None);
        let group = CompletionPlace::Affinity(RqAffinity::Group);
        assert_eq!(group.target(0, 0), None);
        assert_eq!(group.target(60_000, 0), Some(60_000), "a CPU that is not there is in no group");
    }
}
