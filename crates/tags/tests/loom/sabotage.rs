//! Tests of the tests: with a part of the protocol left out, the models must find a lost wake-up.

use std::process::Command;

use loom::thread;
use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::sync::sabotage::{Part, leave_out};

use crate::{kinds, model, small, tag_caches, threads};

/// A put and a waiter.
fn one_put_one_waiter() {
    let set = small(1, WakePolicy::Counters, 1);
    let tag = set.caller().try_get().unwrap();
    let mut caller = set.caller();
    let waiter = thread::spawn(move || {
        let tag = caller.get_blocking();
        caller.put(tag);
    });
    set.put(tag);
    waiter.join().unwrap();
}

/// Two puts that make up one batch.
fn two_puts_one_batch() {
    let set = small(2, WakePolicy::Counters, 2);
    let mut holder = set.caller();
    let tags = [holder.try_get().unwrap(), holder.try_get().unwrap()];
    let mut caller = set.caller();
    let waiter = thread::spawn(move || {
        let tag = caller.get_blocking();
        caller.put(tag);
    });
    for tag in tags {
        set.put(tag);
    }
    waiter.join().unwrap();
}

const CASE: &str = "UNDERCROFT_SABOTAGE_CASE";
const PART: &str = "UNDERCROFT_SABOTAGE_PART";

/// A case with a part of the protocol left out, as the environment says. A deadlock in a model may
/// end the process, so [`each_part_is_needed`] runs this in processes of their own.
#[test]
#[ignore = "run by `each_part_is_needed`"]
fn sabotaged() {
    let value = |name| std::env::var(name).unwrap_or_default();
    match value(PART).as_str() {
        "" => {}
        "barrier after clear" => leave_out(Part::BarrierAfterClear),
        "barrier after publish" => leave_out(Part::BarrierAfterPublish),
        "second look" => leave_out(Part::SecondLook),
        "passing on" => leave_out(Part::PassingOn),
        "carry" => leave_out(Part::Carry),
        "light barrier" => leave_out(Part::LightBarrier),
        "closing" => leave_out(Part::Closing),
        "barrier after count" => leave_out(Part::BarrierAfterCount),
        "barrier after answer" => leave_out(Part::BarrierAfterAnswer),
        "looking again" => leave_out(Part::LookingAgain),
        part => panic!("there is no part {part}"),
    }
    match value(CASE).as_str() {
        "one put" => model(2, one_put_one_waiter),
        "two puts" => model(2, two_puts_one_batch),
        "two sleepers" => model(2, || threads::two_sleepers_two_puts(1, 1)),
        "tag_cache" => model(3, tag_caches::a_put_into_the_tag_cache),
        "dropped future" => model(2, kinds::dropped_future_beside_a_waiter),
        case => panic!("there is no case {case}"),
    }
}

/// Runs a case in its own process: the name of the deadlock or panic that was found, if any.
fn run(case: &str, part: &str) -> Result<(), String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sabotage::sabotaged", "--ignored", "--nocapture"])
        .env(CASE, case)
        .env(PART, part)
        .output()
        .unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into())
    }
}

#[test]
fn each_part_is_needed() {
    for case in ["one put", "two puts", "two sleepers", "dropped future", "tag_cache"] {
        run(case, "").unwrap_or_else(|error| panic!("{case}, nothing left out: {error}"));
    }
    for (case, part) in [
        ("one put", "barrier after clear"),
        ("one put", "barrier after publish"),
        ("one put", "second look"),
        ("dropped future", "passing on"),
        ("two puts", "carry"),
        ("two sleepers", "barrier after count"),
        ("two sleepers", "barrier after answer"),
        ("two sleepers", "looking again"),
        ("tag_cache", "light barrier"),
        ("tag_cache", "closing"),
    ] {
        let Err(error) = run(case, part) else { panic!("{case} without {part} goes unnoticed") };
        assert!(error.contains("deadlock"), "{case} without {part}: {error}");
    }
}
