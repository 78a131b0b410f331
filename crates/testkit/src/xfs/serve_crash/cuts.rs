//! Cuts of a history: what every answered ticket covers is there, by our replay and by the kernel's.

use crate::disk;
use crate::xfs::serve_crash::files::owner;
use crate::xfs::serve_crash::history::{History, Plan, THREADS, run};
use crate::xfs::serve_crash::model::{Past, Reached, Tree};
use crate::xfs::serve_crash::notes::Progress;
use crate::xfs::serve_crash::trees::{kernels, ours};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::testing::recorder::Unflushed;
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, Xfsprogs};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, Severity, check};
use undercroft_xfs::recovery::recover;

/// How often a history is cut.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Cuts that we replay.
    pub ours: usize,
    /// Further ones that the kernel replays.
    pub kernels: usize,
}

/// Counts of the examined files and cuts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    pub cuts: Count,
    /// Operations of all threads.
    pub operations: usize,
    /// Tickets that were answered.
    pub answered: usize,
    /// Files that were compared with their durable content and had not been changed since.
    pub unchanged: usize,
    /// Files that had been changed since.
    pub changed: usize,
    /// Threads that were in an operation, and tickets that waited, at all cuts together.
    pub busy: usize,
    pub waiting: usize,
}

impl Judged {
    pub fn add(&mut self, other: &Self) {
        let Self { cuts, operations, answered, unchanged, changed, busy, waiting } = self;
        cuts.ours += other.cuts.ours;
        cuts.kernels += other.cuts.kernels;
        *operations += other.operations;
        *answered += other.answered;
        *unchanged += other.unchanged;
        *changed += other.changed;
        *busy += other.busy;
        *waiting += other.waiting;
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { ours, kernels } = self.cuts;
        let Self { operations, answered, unchanged, changed, busy, waiting, .. } = self;
        let each = |sum: usize| sum as f64 / (ours + kernels).max(1) as f64;
        write!(
            f,
            "{operations} operations and {answered} answered tickets; {ours} cuts replayed by us and \
             {kernels} by the kernel, {:.1} operations and {:.1} tickets under way at each; \
             {unchanged} files as their last ticket had them, {changed} changed since",
            each(*busy),
            each(*waiting)
        )
    }
}

/// A disk that a crash left.
struct Cut {
    disk: Arc<dyn BlockDevice>,
    what: String,
}

/// Runs a history and cuts it in places that are spread over it at random.
pub fn judge(plan: &Plan, count: Count) -> Judged {
    let History { mut recording, notes, pasts } = run(plan);
    let (mut random, mut progress) = (Random::new(plan.seed), Progress::new(notes, &pasts));
    let operations = pasts.iter().map(|past| past.names.len() - 1).sum();
    let mut judged = Judged { operations, ..Judged::default() };
    let scratch = tempfile::tempdir().unwrap();
    let events = recording.events().len() as u64;
    let mut place = |by_kernel| (random.below(events), by_kernel, random.bits());
    let mut places: Vec<_> = (0..count.ours).map(|_| place(false)).collect();
    places.extend((0..count.kernels).map(|_| place(true)));
    places.sort_unstable();
    for (place, by_kernel, seed) in places {
        while (recording.position() as u64) <= place
            && let Some(event) = recording.step()
        {
            progress.pass(event);
        }
        let unflushed = match seed % 4 {
            0 => Unflushed::Dropped,
            1 => Unflushed::Kept,
            // The kernel does not recover from blocks of metadata that were torn by sectors.
            _ if by_kernel => Unflushed::TornInUnits { seed, sectors: 8 },
            _ => Unflushed::Torn { seed },
        };
        let what = format!("seed {}, event {place} of {events}, {unflushed:?}", plan.seed);
        let cut = Cut { disk: recording.disk(unflushed), what };
        let tree = if by_kernel {
            judged.cuts.kernels += 1;
            cut.replay_by_kernel(&scratch.path().join("image"))
        } else {
            judged.cuts.ours += 1;
            cut.replay(seed.is_multiple_of(5))
        };
        cut.compare(&pasts, progress.reached(), tree, &mut judged);
        judged.busy += progress.busy();
        judged.waiting += progress.waiting();
    }
    while let Some(event) = recording.step() {
        progress.pass(event);
    }
    judged.answered = progress.answered;
    if plan.closes {
        assert_eq!(progress.waiting(), 0, "tickets without an answer");
    }
    judged
}

impl Cut {
    /// Has us replay it, on the disk or, as for readers, in memory; and checks it.
    fn replay(&self, in_memory: bool) -> Tree {
        let what = &self.what;
        if !in_memory {
            let recovered = recover(&self.disk, &mut |_| {});
            recovered.unwrap_or_else(|error| panic!("{what}: {error}"));
            let options = CheckOptions::default();
            let report = check(Arc::clone(&self.disk), &options, &mut |finding| {
                // Blocks behind the end of a file are left by a change that was cut off: legal.
                assert!(finding.severity == Severity::Warning, "{what}: {finding}");
            });
            assert!(report.unwrap().is_clean(), "{what}");
        }
        let volume = Volume::open(Arc::clone(&self.disk));
        let volume = volume.unwrap_or_else(|error| panic!("{what}: {error}"));
        ours(&Arc::new(volume)).unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Has the kernel replay it, and the newest `xfs_repair` look at what came of it.
    fn replay_by_kernel(&self, image: &Path) -> Tree {
        let what = &self.what;
        disk::save(self.disk.as_ref(), image);
        let mount = LoopMount::new(image, Access::ReadWrite, &[]);
        let mount = mount.unwrap_or_else(|error| panic!("{what}: {error}"));
        let tree = kernels(mount.path());
        mount.unmount().unwrap();
        let repair = Xfsprogs::newest().unwrap().repair_check(image);
        repair.unwrap_or_else(|error| panic!("{what}: {error}"));
        tree
    }

    /// Compares the volume with the history of each thread.
    fn compare(&self, pasts: &[Past], reached: &[Reached], tree: Tree, judged: &mut Judged) {
        let mut trees = vec![Tree::new(); THREADS];
        for (path, found) in tree {
            trees[owner(&path)].insert(path, found);
        }
        for (thread, ((past, reached), tree)) in pasts.iter().zip(reached).zip(&trees).enumerate() {
            if let Err(reason) = past.judge(reached, tree) {
                panic!("{}, thread {thread}, {reached:?}:\n{reason}", self.what);
            }
            for entry in past.names[reached.committed].values() {
                match past.is_unchanged(entry.file, reached) {
                    true => judged.unchanged += 1,
                    false => judged.changed += 1,
                }
            }
        }
    }
}
