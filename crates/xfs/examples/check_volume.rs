//! Checks volumes and prints their defects.
//!
//! `cargo run --release -p undercroft-xfs --example check_volume -- IMAGE...`

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_xfs::check::{CheckOptions, Finding, check};

fn check_image(path: &str) -> Result<bool, Box<dyn std::error::Error>> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(Path::new(path), true)?);
    let start = Instant::now();
    let mut print = |finding: Finding| println!("{:?}: {finding}", finding.severity);
    let report = check(device, &CheckOptions::default(), &mut print)?;
    println!("{path}: {report:?} in {:?}", start.elapsed());
    Ok(report.is_clean())
}

fn main() -> ExitCode {
    let mut clean = true;
    for path in std::env::args().skip(1) {
        match check_image(&path) {
            Ok(good) => clean &= good,
            Err(error) => {
                println!("{path}: {error}");
                clean = false;
            }
        }
    }
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
