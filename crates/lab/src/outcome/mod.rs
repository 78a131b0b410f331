//! What experiments find, by kind: data, for records, tables and plots, which know no experiment.
//! What ageing leaves is described by the map that was asked for, and stays beside it in `age`.

pub(crate) mod affinity;
pub(crate) mod alloc;
pub(crate) mod calibration;
pub(crate) mod fsync;
pub(crate) mod iops;
pub(crate) mod meta;
pub(crate) mod mount;
pub(crate) mod tags;
pub(crate) mod unplug;

use serde::{Deserialize, Serialize};

use crate::age::AgeOutcome;
use affinity::AffinityOutcome;
use alloc::{AllocOutcome, SearchOutcome};
use calibration::CalibrationOutcome;
use fsync::FsyncOutcome;
use iops::IopsOutcome;
use meta::MetaOutcome;
use mount::MountOutcome;
use tags::TagsOutcome;
use unplug::UnplugOutcome;

/// The outcome of one variant in one case of an experiment. As JSON the kind is the field
/// `experiment`, in words joined by hyphens such as `tags-depth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Outcome {
    /// Tags: one hardware queue of growing depth.
    TagsDepth(TagsOutcome),
    /// Tags: twenty hardware queues that share one set.
    TagsShared(TagsOutcome),
    /// Tags: a thousand threads want one of few tags.
    TagsHerd(TagsOutcome),
    /// Tags: a reader of depth 1 beside one of depth 256.
    TagsFairness(TagsOutcome),
    /// Tags: how much one run differs from the next.
    TagsVariability(TagsOutcome),
    /// I/Os a second of a driver.
    Iops(IopsOutcome),
    /// Unplugging a device of many leaves.
    Unplug(UnplugOutcome),
    /// Placement of queueing and completion.
    Affinity(AffinityOutcome),
    /// Small files, each made durable.
    Fsync(FsyncOutcome),
    /// Empty files, created, looked at and deleted.
    Meta(MetaOutcome),
    /// A project built on mounted volumes.
    Mount(MountOutcome),
    /// Free space that was made.
    Age(AgeOutcome),
    /// The workload on an allocator.
    Alloc(AllocOutcome),
    /// Speed of single allocations.
    AllocSearch(SearchOutcome),
    /// The same by the number of free extents.
    AllocGrowth(SearchOutcome),
    /// Speed of the machine behind a step of a report.
    Calibration(CalibrationOutcome),
}

impl Outcome {
    /// The experiment, in one line.
    #[must_use]
    pub fn title(&self) -> String {
        let tags = |what: &str, of: &TagsOutcome| format!("tags: {what}; {}", of.crowd());
        match self {
            Self::TagsDepth(of) => tags("one hardware queue, depth by depth", of),
            Self::TagsShared(of) => {
                tags(&format!("one set shared by {} hardware queues", of.queues), of)
            }
            Self::TagsHerd(of) => tags("the herd", of),
            Self::TagsFairness(of) => format!(
                "tags: {} tags for a small and a large reader; {} runs of {} s",
                of.depth, of.rate.repeats, of.rate.seconds
            ),
            Self::TagsVariability(of) => tags("variability from run to run", of),
            Self::Iops(of) => {
                format!("iops: drivers; {} runs of {} s", of.rate.repeats, of.rate.seconds)
            }
            Self::Unplug(of) => format!(
                "unplug: an OLTP mix on {} leaves; {} threads, {} runs of {} s",
                of.leaves, of.threads, of.rate.repeats, of.rate.seconds
            ),
            Self::Affinity(of) => format!(
                "affinity: queueing and completion on chosen CPUs; {} runs of {} s",
                of.rate.repeats, of.rate.seconds
            ),
            Self::Fsync(_) => "fsync: files written and made durable".into(),
            Self::Meta(of) => format!(
                "meta: {} empty files, created, looked at and deleted; {} rounds",
                of.files, of.rounds
            ),
            Self::Mount(of) => format!(
                "mount: {} built on {} mounted volumes at a time, make -j{}",
                of.project, of.disks, of.jobs
            ),
            Self::Age(of) => format!("age: {} free space in {} groups", of.map.name(), of.groups),
            Self::Alloc(of) => format!(
                "alloc: {} files, {} MB, by {} writers",
                of.files,
                of.data_bytes >> 20,
                of.writers
            ),
            Self::AllocSearch(_) => "alloc: one extent at a time".to_owned(),
            Self::AllocGrowth(_) => {
                "alloc: ever more free extents near the hint are too short".to_owned()
            }
            Self::Calibration(of) => format!("calibration: the machine behind {}", of.step),
        }
    }

    /// The outcome of the experiment on I/Os a second.
    pub(crate) fn iops(&self) -> Option<&IopsOutcome> {
        if let Self::Iops(of) = self { Some(of) } else { None }
    }

    /// The outcome of the experiment on unplugging.
    pub(crate) fn unplug(&self) -> Option<&UnplugOutcome> {
        if let Self::Unplug(of) = self { Some(of) } else { None }
    }

    /// The outcome of the experiment on fsync.
    pub(crate) fn fsync(&self) -> Option<&FsyncOutcome> {
        if let Self::Fsync(of) = self { Some(of) } else { None }
    }

    /// The outcome of the experiment on empty files.
    pub(crate) fn meta(&self) -> Option<&MetaOutcome> {
        if let Self::Meta(of) = self { Some(of) } else { None }
    }

    /// The outcome of the experiment on mounted volumes.
    pub(crate) fn mount(&self) -> Option<&MountOutcome> {
        if let Self::Mount(of) = self { Some(of) } else { None }
    }

    /// The outcome of the experiment on affinity.
    pub(crate) fn affinity(&self) -> Option<&AffinityOutcome> {
        if let Self::Affinity(of) = self { Some(of) } else { None }
    }

    /// Free space that was made.
    pub(crate) fn age(&self) -> Option<&AgeOutcome> {
        if let Self::Age(of) = self { Some(of) } else { None }
    }

    /// The outcome of the workload on an allocator.
    pub(crate) fn alloc(&self) -> Option<&AllocOutcome> {
        if let Self::Alloc(of) = self { Some(of) } else { None }
    }

    /// The speed of single allocations.
    pub(crate) fn search(&self) -> Option<&SearchOutcome> {
        match self {
            Self::AllocSearch(of) | Self::AllocGrowth(of) => Some(of),
            _ => None,
        }
    }

    /// Speed of the machine behind a step.
    pub(crate) fn calibration(&self) -> Option<&CalibrationOutcome> {
        if let Self::Calibration(of) = self { Some(of) } else { None }
    }

    /// The outcome of an experiment on tags, whichever it is.
    pub(crate) fn tags(&self) -> Option<&TagsOutcome> {
        match self {
            Self::TagsDepth(of)
            | Self::TagsShared(of)
            | Self::TagsHerd(of)
            | Self::TagsFairness(of)
            | Self::TagsVariability(of) => Some(of),
            _ => None,
        }
    }
}
