//! What stands for a network disk server in programs that were built without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use undercroft_block::BlockDevice;

use super::load::Load;
use crate::error::LabError;
use crate::latency::LatencyRecorder;

/// Says what is missing.
pub(super) fn live(
    _: &Arc<dyn BlockDevice>,
    _: Option<u32>,
    _: Load,
    _: &AtomicU64,
    _: &AtomicBool,
) -> Result<LatencyRecorder, LabError> {
    let what = "this program was built without network disks; build it with the feature `network`";
    Err(LabError::Served(what.into()))
}
