//! The experiments on tags in their smoke size: every variant runs, its sums add up (a run fails if
//! not), and the records have the options given. No test here looks at a figure that depends on
//! time.

use undercroft_lab::tags::{self, Case, PolicyName, TagsOptions, TagsOutcome, Waiters};
use undercroft_lab::{Outcome, Record, RunOptions, Session, Size};
use undercroft_lab::{plot, read_records, write_record, write_tables};

const SMOKE: RunOptions = RunOptions { size: Size::Smoke, repeat: None, duration: None, seed: 1 };

fn run(cases: &[Case], waiters: Waiters) -> Vec<Outcome> {
    let policies = PolicyName::ALL.to_vec();
    let options = TagsOptions { cases: cases.to_vec(), policies, waiters };
    let mut outcomes = Vec::new();
    tags::run(&options, &SMOKE, &mut |outcome| outcomes.push(outcome)).unwrap();
    outcomes
}

fn of(outcome: &Outcome) -> &TagsOutcome {
    match outcome {
        Outcome::TagsDepth(of)
        | Outcome::TagsShared(of)
        | Outcome::TagsHerd(of)
        | Outcome::TagsFairness(of)
        | Outcome::TagsVariability(of) => of,
        other => panic!("{other:?} of another experiment"),
    }
}

fn check_counts(outcomes: &[Outcome]) {
    for outcome in outcomes.iter().map(of) {
        assert_eq!(outcome.rate.iops_of_runs.len(), outcome.rate.repeats);
        assert_eq!(outcome.rate.repeats, 1);
        let from_ios = outcome.rate.ios as f64 / outcome.rate.iops;
        // The window lasts at least as long as the run was asked to.
        assert!(outcome.rate.ios == 0 || from_ios >= outcome.rate.seconds, "{outcome:?}");
        assert!(outcome.latency.p50 <= outcome.latency.p99, "{outcome:?}");
        assert!(outcome.latency.p99 <= outcome.latency.max, "{outcome:?}");
    }
    assert!(outcomes.iter().map(of).map(|outcome| outcome.rate.ios).sum::<u64>() > 0);
}

#[test]
fn depth_and_shared_run_every_policy_at_every_depth() {
    for waiters in [Waiters::Threads, Waiters::Tasks] {
        let outcomes = run(&[Case::Depth, Case::Shared], waiters);
        check_counts(&outcomes);
        let seen: Vec<_> = outcomes
            .iter()
            .map(|outcome| {
                let shared = matches!(outcome, Outcome::TagsShared(_));
                (shared, of(outcome).depth, of(outcome).policy, of(outcome).waiters)
            })
            .collect();
        let mut expected = Vec::new();
        for shared in [false, true] {
            for depth in [2, 64] {
                expected.extend(PolicyName::ALL.map(|policy| (shared, depth, policy, waiters)));
            }
        }
        assert_eq!(seen, expected);
    }
}

#[test]
fn herd_and_variability_run_every_policy() {
    // Each run checks that no policy but `WakeAll` woke more waiters than tags came back.
    let outcomes = run(&[Case::Herd, Case::Variability], Waiters::Threads);
    check_counts(&outcomes);
    assert_eq!(outcomes.len(), 2 * PolicyName::ALL.len());
}

#[test]
fn fairness_tells_the_readers_apart() {
    let outcomes = run(&[Case::Fairness], Waiters::Threads);
    assert_eq!(outcomes.len(), 2 * 2 * PolicyName::ALL.len());
    for pair in outcomes.chunks(2) {
        let [small, large] = [of(&pair[0]), of(&pair[1])];
        assert_eq!((small.reader.as_str(), small.outstanding), ("512 B x 1", 1));
        assert_eq!((large.reader.as_str(), large.outstanding), ("128 KiB x 256", 256));
        assert_eq!((small.policy, small.fair), (large.policy, large.fair));
        // No read is faster than the device.
        assert!(small.latency.count == 0 || small.latency.p50 >= 299.0, "{small:?}");
    }
}

#[test]
fn records_survive_their_file_and_make_tables_and_plots() {
    let session = Session::begin("undercroft lab tags --smoke".into(), 1).unwrap();
    let outcomes = run(&[Case::Depth, Case::Fairness], Waiters::Threads);
    let record = |outcome| Record { outcome, session: session.clone() };
    let records: Vec<Record> = outcomes.into_iter().map(record).collect();
    let mut file = Vec::new();
    records.iter().for_each(|record| write_record(&mut file, record).unwrap());
    assert!(read_records(&mut &file[..]).unwrap() == records, "records changed in their file");

    let first: serde_json::Value =
        serde_json::from_slice(file.split(|&byte| byte == b'\n').next().unwrap()).unwrap();
    assert_eq!(first["experiment"], "tags-depth");
    assert_eq!(first["policy"], "counters");
    assert_eq!((&first["workers"], &first["depth"]), (&4.into(), &2.into()));
    for figure in ["iops", "stddev", "sleeps_per_get", "wakes_per_put"] {
        assert!(first[figure].is_number(), "{figure}");
    }
    assert_eq!(first["machine"]["kernel"], session.machine.kernel.as_str());
    assert_eq!((&first["seed"], &first["command"]), (&1.into(), &session.command.as_str().into()));

    let mut tables = Vec::new();
    write_tables(&records, &mut tables).unwrap();
    let tables = String::from_utf8(tables).unwrap();
    assert_eq!(tables.matches(&session.command).count(), 1);
    assert!(tables.contains("queue size"));
    assert!(tables.contains("512 B x 1"));
    let picture = plot(&records);
    assert!(picture.contains(">128 KiB x 256 reader<") && picture.contains(">fair shares<"));
    // I/Os a second and wake-ups, each over the depth.
    assert_eq!(picture.matches("<polyline").count(), 2 * PolicyName::ALL.len());
}

#[test]
fn a_line_that_is_no_record_is_named() {
    let error = read_records(&mut &b"\n{\"experiment\":\"tags-depth\"}\n"[..]).unwrap_err();
    assert!(error.to_string().starts_with("line 2 is not a record"), "{error}");
}
