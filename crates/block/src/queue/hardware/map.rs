//! From the CPU of a submitter to a hardware queue.

use crate::affinity::Topology;

/// Which hardware queue serves which CPU.
///
/// CPUs are taken in an order in which those that share a cache are neighbours, and cut into as
/// many runs as there are queues: a queue serves CPUs that are close to each other, and all queues
/// about as many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueMap {
    /// By number of the CPU.
    queues: Vec<usize>,
    count: usize,
}

impl QueueMap {
    /// A map of the CPUs of `topology` to `count` queues, at least one.
    pub(crate) fn new(topology: &Topology, count: usize) -> Self {
        let cpus = topology.online().len().max(1);
        let last = topology.online().iter().last().unwrap_or(0);
        let queues = (0..=last)
            .map(|cpu| topology.position(cpu).unwrap_or(cpu as usize % cpus) * count / cpus)
            .collect();
        Self { queues, count }
    }

    /// The queue of a CPU; any for one that came later.
    pub(crate) fn queue_of(&self, cpu: u32) -> usize {
        self.queues.get(cpu as usize).copied().unwrap_or(cpu as usize % self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_queue_and_every_queue_is_used() {
        let topology = Topology::of_groups(["0,2", "1,3"]);
        let map = |count| {
            let map = QueueMap::new(&topology, count);
            [0, 1, 2, 3].map(|cpu| map.queue_of(cpu))
        };
        assert_eq!(map(1), [0, 0, 0, 0]);
        assert_eq!(map(2), [0, 1, 0, 1]);
        assert_eq!(map(4), [0, 2, 1, 3]);
        assert!(QueueMap::new(&topology, 3).queue_of(1000) < 3);
    }
}
