//! Every interleaving, and every outcome that weak memory allows, of small cases; run with
//! `RUSTFLAGS="--cfg loom" cargo test -p undercroft-tags --release --test loom`.
//!
//! A lost wake-up shows as a deadlock, which loom reports. Larger cases are ignored here and run by
//! `cargo xtask soak models`.

#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod batches;
mod cancel;
mod kinds;
mod sabotage;
mod share;
mod tag_caches;
mod threads;

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::{Builder, Tag, TagSet};

/// Policies under which no waiter may be lost.
const POLICIES: [WakePolicy; 4] =
    [WakePolicy::Counters, WakePolicy::CyclicBatches, WakePolicy::WakeOne, WakePolicy::WakeAll];

/// More preemptions than any small case has room for: all executions.
const EVERY: usize = 100;

/// Tries all executions of `case` with at most `preemptions` switches that no thread asked for.
fn model(preemptions: usize, case: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    let executions = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        case();
    });
    println!("{} executions", executions.load(Ordering::Relaxed));
}

/// A set with one wait queue and one thread on its way at a time, unless the case is about several;
/// without tag caches, unless it is about them.
fn small(depth: u32, policy: WakePolicy, batch: u32) -> TagSet {
    with_queues(depth, policy, batch, 1).build().unwrap()
}

fn with_queues(depth: u32, policy: WakePolicy, batch: u32, queues: usize) -> Builder {
    TagSet::builder(depth)
        .policy(policy)
        .wake_batch(batch)
        .wait_queues(queues)
        .threads_at_once(1)
        .tag_caches(false)
}

/// The holder of each tag: no tag may have two, and what one holder wrote the next must see.
struct Holders(Vec<loom::cell::UnsafeCell<u32>>, AtomicUsize);

impl Holders {
    fn new(depth: u32) -> Arc<Self> {
        let cells = (0..depth).map(|_| loom::cell::UnsafeCell::new(0)).collect();
        Arc::new(Self(cells, AtomicUsize::new(0)))
    }

    /// Uses a tag as its only holder; loom panics if another does at the same time, or did without
    /// an order between the two (invariant I2).
    fn hold(&self, tag: Tag) {
        self.0[tag.index()].with_mut(|_| ());
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}
