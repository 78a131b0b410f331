//! What passed through every device of a stack.

use std::sync::Arc;

use crate::device::{BlockDevice, Layer};
use crate::statistics::{QueueLatencies, QueueReport, Statistics};
use crate::units::Sector;

/// One device of a stack, with what passed through the leaves at or below it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceReport {
    /// Devices above it.
    pub depth: usize,
    /// As messages call it.
    pub name: String,
    /// Number of sectors.
    pub capacity: Sector,
    /// Whether it has a queue of its own.
    pub is_leaf: bool,
    /// Sums of the counts.
    pub statistics: Statistics,
    /// Sums of the histograms.
    pub latencies: QueueLatencies,
    /// The hardware queues of a leaf that anything passed through; none of a stacked device.
    pub queues: Vec<QueueReport>,
}

impl DeviceReport {
    fn of(device: &dyn BlockDevice, depth: usize) -> Self {
        let (is_leaf, mut queues) = match device.layer() {
            Layer::Leaf(queue) => (true, queue.hardware_queues()),
            Layer::Stacked(_) => (false, Vec::new()),
        };
        queues.retain(|queue| queue.statistics != Statistics::default());
        Self {
            depth,
            name: device.name().to_owned(),
            capacity: device.capacity(),
            is_leaf,
            queues,
            statistics: device.statistics(),
            latencies: device.latencies(),
        }
    }

    /// The reports of `device` and of all below it, each before those below it.
    #[must_use]
    pub fn of_stack(device: &dyn BlockDevice) -> Vec<Self> {
        let mut reports = vec![Self::of(device, 0)];
        let below = |device: &dyn BlockDevice, depth| -> Vec<(usize, Arc<dyn BlockDevice>)> {
            match device.layer() {
                Layer::Leaf(_) => Vec::new(),
                Layer::Stacked(stacked) => {
                    stacked.devices().iter().rev().map(|leg| (depth, Arc::clone(leg))).collect()
                }
            }
        };
        let mut work = below(device, 1);
        while let Some((depth, device)) = work.pop() {
            reports.push(Self::of(&*device, depth));
            work.extend(below(&*device, depth + 1));
        }
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::MemoryDevice;
    use crate::stack::{Mirror, Stripe};
    use crate::{QueueName, write_all_at};

    #[test]
    fn every_device_is_reported_above_those_below_it() {
        let memory = || Arc::new(MemoryDevice::new(64 << 10)) as Arc<dyn BlockDevice>;
        let mirror = Mirror::new(vec![memory(), memory()]).unwrap();
        let stripe = Stripe::new(4096, vec![Arc::new(mirror), memory()]).unwrap();
        write_all_at(&stripe, Sector(0), &[1; 8192]).unwrap();
        let reports = DeviceReport::of_stack(&stripe);
        let rows: Vec<_> = reports
            .iter()
            .map(|report| (report.depth, report.is_leaf, report.statistics.bytes_written))
            .collect();
        let leaf = |depth| (depth, true, 4096);
        assert_eq!(rows, [(0, false, 12288), (1, false, 8192), leaf(2), leaf(2), leaf(1)]);
        assert_eq!(reports[1].name, "mirror(memory,memory)");
        assert_eq!(reports[4].latencies.write.count(), 1);
        let queues = |report: &DeviceReport| report.queues.clone();
        assert_eq!(queues(&reports[1]), []);
        let only = QueueReport { name: QueueName::Own(0), statistics: reports[2].statistics };
        assert_eq!(queues(&reports[2]), [only]);
    }
}
