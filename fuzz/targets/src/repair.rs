//! Whole volumes with damage put right, in memory.

use crate::PatchedDevice;
use crate::input::{Input, Patches};
use crate::log::ROUNDS;
use crate::sample::samples;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::stack::Overlay;
use undercroft_repair::Plan;
use undercroft_xfs::check::{CheckOptions, check};

/// Rounds of a repair, each of which checks the volume and reads it a few times.
const REPAIR_ROUNDS: u64 = 12;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let sample = input.choose(samples());
    let intact = input.0.is_empty();
    let device = Arc::new(PatchedDevice::new(sample, Patches::new(input), |_| true).into_device());
    device.driver().allow(REPAIR_ROUNDS * ROUNDS * sample.bytes);
    let plan = match Plan::find(device.clone()) {
        Ok(plan) => plan,
        Err(error) => return drop(error.to_string()),
    };
    assert!(!intact || plan.is_sound(), "a sound volume is to be changed: {:?}", plan.actions);
    // What is written is what was checked, and is sound.
    let copy: Arc<dyn BlockDevice> = Arc::new(Overlay::new(device.clone()));
    plan.write_to(&copy).expect("a device in memory does not fail");
    device.driver().allow(REPAIR_ROUNDS * ROUNDS * sample.bytes);
    let mut findings = Vec::new();
    let options = CheckOptions { threads: 1, ..CheckOptions::default() };
    let report = check(copy, &options, &mut |finding| findings.push(finding.to_string()));
    assert!(report.is_ok_and(|report| report.errors == 0), "left: {findings:?}");
}
