//! The experiment on affinity in its smoke size: the counters are exactly the ones that each row
//! asks for.

use undercroft_lab::affinity::{self, AffinityOptions, AffinityOutcome, Placement};
use undercroft_lab::{Outcome, RunOptions, Size};

const SMOKE: RunOptions = RunOptions { size: Size::Smoke, repeat: None, duration: None, seed: 1 };

#[test]
fn every_row_counts_what_it_asks_for() {
    let options = AffinityOptions::default();
    let mut outcomes: Vec<AffinityOutcome> = Vec::new();
    affinity::run(&options, &SMOKE, &mut |outcome| match outcome {
        Outcome::Affinity(of) => outcomes.push(of),
        other => panic!("{other:?} of another experiment"),
    })
    .unwrap();
    assert_eq!(outcomes.len(), 2 * (2 * (18 + 3) + 6 + 3));
    for one in &outcomes {
        let on = one.on;
        match one.placement {
            Placement::Pinned { .. } => {
                let (queued, completed) = (one.q_local + one.q_remote, one.c_local + one.c_remote);
                let local_queue = on.queue == on.application;
                let local_completion = on.completion == Some(on.interrupt);
                assert_eq!(one.q_local, if local_queue { queued } else { 0.0 }, "{one:?}");
                assert_eq!(one.c_local, if local_completion { completed } else { 0.0 }, "{one:?}");
                assert!(queued > 0.0 && completed > 0.0, "{one:?}");
            }
            // Without affinity nothing is handed on.
            Placement::Free { rq_affinity: 0 } => assert_eq!(one.c_remote, 0.0, "{one:?}"),
            Placement::Free { .. } => {}
        }
    }
}
