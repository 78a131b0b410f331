//! The experiment on mounted volumes in its smoke size: what is built works, each volume is sound, and
//! I/O is queued where the setting says.

use std::fs;
use std::process::Command;

use undercroft_lab::mount::{self, MountOptions, MountOutcome, Source, Step, Tunables};
use undercroft_lab::{LabError, Outcome, RunOptions, Size};

const SMOKE: RunOptions = RunOptions { size: Size::Smoke, repeat: None, duration: None, seed: 1 };

fn run(options: &MountOptions) -> Result<Vec<MountOutcome>, LabError> {
    let mut outcomes = Vec::new();
    mount::run(options, &SMOKE, &mut |outcome| match outcome {
        Outcome::Mount(of) => outcomes.push(of),
        other => panic!("{other:?} of another experiment"),
    })?;
    Ok(outcomes)
}

#[test]
fn a_project_is_built_with_each_setting() {
    let scratch = tempfile::tempdir().unwrap();
    let options = MountOptions {
        scratch: scratch.path().to_owned(),
        tunables: Tunables::ROWS.to_vec(),
        disks: 2,
        bytes: 320 << 20,
        source: Source::Generated(100),
    };
    let outcomes = run(&options).unwrap();
    assert_eq!(outcomes.iter().map(|one| one.tunables).collect::<Vec<_>>(), Tunables::ROWS);
    for one in &outcomes {
        assert_eq!(one.steps.iter().map(|times| times.step).collect::<Vec<_>>(), Step::ALL);
        assert!(one.steps.iter().all(|times| times.seconds.len() == 2), "{one:?}");
        assert!(one.q_local + one.q_remote > 0.0 && one.c_local + one.c_remote > 0.0, "{one:?}");
        // On a machine with other work a thread may change its processor on the way, seldom.
        let is_stray = |remote: f64, local: f64| remote < (remote + local) / 10.0;
        if !one.tunables.queue_affinity {
            assert!(is_stray(one.q_remote, one.q_local), "{one:?}");
        }
        if !one.tunables.completion_affinity && one.tunables.rq_affinity == 0 {
            assert!(is_stray(one.c_remote, one.c_local), "{one:?}");
        }
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "something stays");
}

#[test]
fn a_project_that_cannot_be_built_ends_the_run_and_nothing_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("Makefile"), "all:\n\techo 'no such luck' >&2; exit 3\n").unwrap();
    let archive = scratch.path().join("tree.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(scratch.path());
    assert!(tar.arg("tree").status().unwrap().success());
    let below = scratch.path().join("below");
    fs::create_dir(&below).unwrap();
    let options = MountOptions {
        scratch: below.clone(),
        tunables: vec![Tunables::ROWS[0]],
        disks: 1,
        bytes: 320 << 20,
        source: Source::Archive(archive),
    };
    let error = run(&options).unwrap_err().to_string();
    assert!(error.contains("make") && error.contains("no such luck"), "{error}");
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0, "something stays");
}
