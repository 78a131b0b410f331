//! The check of a volume that an experiment leaves.

use std::sync::Arc;

use undercroft_block::BlockDevice;
use undercroft_xfs::check::{CheckOptions, check};

use crate::error::LabError;

/// Fails if the check has any finding.
pub(crate) fn judge(device: Arc<dyn BlockDevice>) -> Result<(), LabError> {
    let mut first = None;
    let report = check(device, &CheckOptions::default(), &mut |finding| {
        first.get_or_insert_with(|| finding.to_string());
    })?;
    if report.is_clean() {
        return Ok(());
    }
    Err(LabError::Unsound(first.unwrap_or_else(|| "the check could not be completed".into())))
}
