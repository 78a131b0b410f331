//! What the tests of the whole-volume check share.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_xfs::check::{CheckOptions, Finding, Report, check};

/// Checks an image file; returns the report and all findings.
pub fn check_image(image: &Path) -> Result<(Report, Vec<Finding>), Box<dyn Error>> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true)?);
    let mut findings = Vec::new();
    let report = check(device, &CheckOptions::default(), &mut |finding| findings.push(finding))?;
    Ok((report, findings))
}

/// The first findings, one a line.
pub fn describe(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings.iter().take(12).map(|finding| format!("  {finding}")).collect();
    lines.join("\n")
}
