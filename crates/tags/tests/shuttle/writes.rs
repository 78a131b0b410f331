//! The writes of the fast path to shared memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::check_random;
use undercroft_tags::TagSet;
use undercroft_tags::sync::counts::{Counts, so_far};

/// Loads and writes of shared memory during `work`.
fn during(work: impl FnOnce()) -> Counts {
    let before = so_far();
    work();
    let after = so_far();
    Counts { loads: after.loads - before.loads, writes: after.writes - before.writes }
}

/// A put without waiters writes the tag cache or the bit, and nothing else; its looks for waiters
/// are loads. One test, as the counts are of the whole process: `cargo xtask test` runs it alone.
#[test]
fn a_put_writes_the_tag_alone() {
    let checked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&checked);
    check_random(
        move || {
            let set = TagSet::builder(128).tag_caches(false).build().unwrap();
            let mut caller = set.caller();
            let mut tag = None;
            // Tag cache; the bit.
            let get = during(|| tag = caller.try_get());
            assert_eq!(get, Counts { loads: 1, writes: 1 });
            // Gate, waiters; the bit.
            let put = during(|| caller.put(tag.unwrap()));
            assert_eq!(put, Counts { loads: 2, writes: 1 });
            let tag = caller.try_get().unwrap();
            assert_eq!(during(|| set.put(tag)), Counts { loads: 1, writes: 1 });
            let mut tags = None;
            let get = during(|| tags = Some(caller.try_get_batch(16)));
            assert_eq!((get.writes, tags.unwrap().len()), (1, 16));
            assert_eq!(during(|| set.put_batch(tags.unwrap())), Counts { loads: 1, writes: 1 });

            let set = TagSet::new(128).unwrap();
            let mut caller = set.caller();
            let mut tag = caller.try_get().unwrap();
            // Gate, tag cache, gate; the tag cache.
            assert_eq!(during(|| caller.put(tag)), Counts { loads: 3, writes: 1 });
            // Tag cache; the tag cache.
            assert_eq!(during(|| tag = caller.try_get().unwrap()), Counts { loads: 1, writes: 1 });
            set.put(tag);
            counter.fetch_add(1, Ordering::Relaxed);
        },
        10,
    );
    assert_eq!(checked.load(Ordering::Relaxed), 10);
}
