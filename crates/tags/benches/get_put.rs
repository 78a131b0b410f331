//! Get and put against the `sbitmap` crate and a free list in crossbeam's `ArrayQueue`.
//!
//! `uncontended` is one thread that gets a tag and puts it; `batch` is 32 tags at once, per tag;
//! `threads` is the time in which all threads together do a number of pairs. The peers do the same
//! work in the same run, so the ratios are what counts.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_queue::ArrayQueue;
use sbitmap::Sbitmap;
use undercroft_tags::TagSet;

/// A full free list.
fn free_list(depth: u32) -> ArrayQueue<u32> {
    let list = ArrayQueue::new(depth as usize);
    for tag in 0..depth {
        list.push(tag).expect("the list has room for every tag");
    }
    list
}

fn uncontended(criterion: &mut Criterion) {
    for depth in [32_u32, 128, 1024] {
        let mut group = criterion.benchmark_group(format!("uncontended/{depth}"));
        group.throughput(Throughput::Elements(1));
        let set = TagSet::new(depth).expect("a depth that is not zero");
        group.bench_function("undercroft", |bencher| {
            let mut caller = set.caller();
            bencher.iter(|| {
                let tag = caller.try_get().expect("nobody else takes tags");
                caller.put(black_box(tag));
            });
        });
        let plain = TagSet::builder(depth).tag_caches(false).build().expect("a sound set");
        group.bench_function("without_caches", |bencher| {
            let mut caller = plain.caller();
            bencher.iter(|| {
                let tag = caller.try_get().expect("nobody else takes tags");
                caller.put(black_box(tag));
            });
        });
        let map = Sbitmap::new(depth as usize, None, false);
        group.bench_function("sbitmap", |bencher| {
            let mut hint = 0;
            bencher.iter(|| {
                let tag = map.get(&mut hint).expect("nobody else takes tags");
                map.put(black_box(tag), &mut hint);
            });
        });
        let list = free_list(depth);
        group.bench_function("array_queue", |bencher| {
            bencher.iter(|| {
                let tag = list.pop().expect("nobody else takes tags");
                list.push(black_box(tag)).expect("it came from there");
            });
        });
        group.finish();
    }
}

fn batch(criterion: &mut Criterion) {
    const BATCH: u32 = 32;
    let mut group = criterion.benchmark_group("batch");
    group.throughput(Throughput::Elements(u64::from(BATCH)));
    let set = TagSet::new(1024).expect("a depth that is not zero");
    group.bench_function("batch_of_32", |bencher| {
        let mut caller = set.caller();
        bencher.iter(|| {
            let tags = caller.try_get_batch(BATCH);
            assert_eq!(tags.len(), BATCH);
            set.put_batch(black_box(tags));
        });
    });
    group.bench_function("32_single", |bencher| {
        let mut caller = set.caller();
        let mut tags = Vec::with_capacity(BATCH as usize);
        bencher.iter(|| {
            for _ in 0..BATCH {
                tags.push(caller.try_get().expect("nobody else takes tags"));
            }
            for tag in tags.drain(..) {
                set.put(black_box(tag));
            }
        });
    });
    group.finish();
}

/// How long `threads` threads take for `pairs` gets and puts in all, each with a state of its own
/// from `state`.
fn together<S>(
    threads: usize,
    pairs: u64,
    state: impl Fn() -> S + Sync,
    pair: impl Fn(&mut S) + Sync,
) -> Duration {
    let barrier = Barrier::new(threads + 1);
    let each = pairs.div_ceil(threads as u64);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut state = state();
                barrier.wait();
                for _ in 0..each {
                    pair(&mut state);
                }
                barrier.wait();
            });
        }
        barrier.wait();
        let started = Instant::now();
        barrier.wait();
        started.elapsed()
    })
}

fn threads(criterion: &mut Criterion) {
    const DEPTH: u32 = 128;
    let mut group = criterion.benchmark_group("threads");
    group.throughput(Throughput::Elements(1));
    for threads in [2, 8, 32] {
        let set = TagSet::new(DEPTH).expect("a depth that is not zero");
        group.bench_with_input(BenchmarkId::new("undercroft", threads), &threads, |b, &n| {
            b.iter_custom(|pairs| {
                together(
                    n,
                    pairs,
                    || set.caller(),
                    |caller| {
                        let tag = caller.get_blocking();
                        caller.put(black_box(tag));
                    },
                )
            });
        });
        let plain = TagSet::builder(DEPTH).tag_caches(false).build().expect("a sound set");
        group.bench_with_input(BenchmarkId::new("without_caches", threads), &threads, |b, &n| {
            b.iter_custom(|pairs| {
                together(
                    n,
                    pairs,
                    || plain.caller(),
                    |caller| {
                        let tag = caller.get_blocking();
                        caller.put(black_box(tag));
                    },
                )
            });
        });
        let map = Sbitmap::new(DEPTH as usize, None, false);
        group.bench_with_input(BenchmarkId::new("sbitmap", threads), &threads, |b, &n| {
            b.iter_custom(|pairs| {
                together(
                    n,
                    pairs,
                    || 0,
                    |hint| {
                        let tag = map.get(hint).expect("more tags than threads");
                        map.put(black_box(tag), hint);
                    },
                )
            });
        });
        let list = free_list(DEPTH);
        group.bench_with_input(BenchmarkId::new("array_queue", threads), &threads, |b, &n| {
            b.iter_custom(|pairs| {
                together(
                    n,
                    pairs,
                    || (),
                    |()| {
                        let tag = list.pop().expect("more tags than threads");
                        list.push(black_box(tag)).expect("it came from there");
                    },
                )
            });
        });
    }
    group.finish();
}

criterion_group!(benches, uncontended, batch, threads);
criterion_main!(benches);
