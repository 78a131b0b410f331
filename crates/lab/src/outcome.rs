//! The sum of what experiments find: data, for records, and through them for tables and plots.

use serde::{Deserialize, Serialize};

use crate::affinity::AffinityOutcome;
use crate::age::AgeOutcome;
use crate::alloc::{AllocOutcome, SearchOutcome};
use crate::calibration::CalibrationOutcome;
use crate::fsync::FsyncOutcome;
use crate::iops::IopsOutcome;
use crate::meta::MetaOutcome;
use crate::mount::MountOutcome;
use crate::statistics::CaseRates;
use crate::tags::TagsOutcome;
use crate::unplug::UnplugOutcome;

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
        match self {
            Self::TagsDepth(of) => of.title("one hardware queue, depth by depth"),
            Self::TagsShared(of) => {
                of.title(&format!("one set shared by {} hardware queues", of.queues))
            }
            Self::TagsHerd(of) => of.title("the herd"),
            Self::TagsFairness(of) => of.title_of_readers(),
            Self::TagsVariability(of) => of.title("variability from run to run"),
            Self::Iops(of) => of.title(),
            Self::Unplug(of) => of.title(),
            Self::Affinity(of) => of.title(),
            Self::Fsync(_) => "fsync: files written and made durable".into(),
            Self::Meta(of) => of.title(),
            Self::Mount(of) => of.title(),
            Self::Age(of) => of.title(),
            Self::Alloc(of) => of.title(),
            Self::AllocSearch(_) => "alloc: one extent at a time".to_owned(),
            Self::AllocGrowth(_) => {
                "alloc: ever more free extents near the hint are too short".to_owned()
            }
            Self::Calibration(of) => format!("calibration: the machine behind {}", of.step),
        }
    }

    /// What it says of rates.
    pub(crate) fn rates(&self) -> Vec<CaseRates> {
        match self {
            Self::TagsDepth(of)
            | Self::TagsShared(of)
            | Self::TagsHerd(of)
            | Self::TagsFairness(of)
            | Self::TagsVariability(of) => vec![of.rates()],
            Self::Iops(of) => vec![of.rates()],
            Self::Unplug(of) => vec![of.rates()],
            Self::Affinity(of) => vec![of.rates()],
            Self::Fsync(of) => vec![of.rates()],
            Self::Meta(of) => of.rates(),
            Self::Mount(of) => of.rates(),
            Self::AllocSearch(of) | Self::AllocGrowth(of) => vec![of.rates()],
            Self::Alloc(of) => vec![of.rates()],
            Self::Age(_) | Self::Calibration(_) => Vec::new(),
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
