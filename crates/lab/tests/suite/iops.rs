//! The experiment on I/Os a second in its smoke size.

use undercroft_lab::iops::{self, Access, DriverName, IopsOptions, IopsOutcome};
use undercroft_lab::{Outcome, RunOptions, Size};

const SMOKE: RunOptions = RunOptions { size: Size::Smoke, repeat: None, duration: None, seed: 1 };

fn options(drivers: &[DriverName]) -> IopsOptions {
    IopsOptions {
        drivers: drivers.to_vec(),
        threads: vec![1, 2],
        batches: vec![1, 32],
        ..IopsOptions::default()
    }
}

fn run(options: &IopsOptions) -> Vec<IopsOutcome> {
    let mut outcomes = Vec::new();
    iops::run(options, &SMOKE, &mut |outcome| outcomes.push(outcome)).unwrap();
    let iops = |outcome| match outcome {
        Outcome::Iops(of) => of,
        other => panic!("{other:?} of another experiment"),
    };
    outcomes.into_iter().map(iops).collect()
}

#[test]
fn drivers_without_a_file_do_every_batch() {
    let outcomes = run(&options(&[DriverName::Null, DriverName::Memory]));
    let seen: Vec<_> =
        outcomes.iter().map(|one| (one.driver.as_str(), one.threads, one.batch)).collect();
    let mut expected = Vec::new();
    for driver in ["null", "memory"] {
        expected.extend([1, 2].map(|threads| [(driver, threads, 1), (driver, threads, 32)]));
    }
    assert_eq!(seen, expected.concat());
    for one in &outcomes {
        assert_eq!((one.block_bytes, one.rate.iops_of_runs.len()), (4096, 1));
        // Whole batches are counted, at the begin of the window as at its end.
        assert_eq!(one.rate.ios % one.batch as u64, 0, "{one:?}");
    }
}

#[test]
fn files_are_read_and_written_by_both_engines() {
    let mut both = options(&[DriverName::FileIoUring, DriverName::FileThreads]);
    both.accesses = vec![Access::Read, Access::Write];
    both.direct = vec![false];
    both.batches = vec![8];
    let outcomes = run(&both);
    let seen: Vec<_> =
        outcomes.iter().map(|one| (one.driver.as_str(), one.access, one.threads)).collect();
    let mut expected = Vec::new();
    for driver in ["file-io_uring", "file-threads"] {
        for access in [Access::Read, Access::Write] {
            expected.extend([(driver, access, 1), (driver, access, 2)]);
        }
    }
    assert_eq!(seen, expected);
}
