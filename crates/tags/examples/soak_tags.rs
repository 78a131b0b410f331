//! Random work on small sets for as many operations as wanted, with more threads than processors
//! and random stalls; fails when a waiter sleeps while tags stay free.
//!
//! `soak_tags OPERATIONS [SEED]`; `cargo xtask soak tags --operations N` builds and runs it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::{Builder, Caller, Tag, TagSet, User};

/// Threads that work on one set.
const WORKERS: usize = 16;
/// Operations on one set before the next one is made.
const ROUND: u64 = 20_000_000;
/// Time without any operation after which a waiter is lost. Every stall is a thousand times
/// shorter.
const STUCK: Duration = Duration::from_secs(20);
/// Tags that a worker holds at most.
const MOST_HELD: usize = 8;

/// A small random number generator (xorshift64*), so that a seed repeats the choices.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

/// One set and what its workers share.
struct Round {
    set: TagSet,
    users: Vec<User>,
    /// Per tag, the workers that hold it: never more than one.
    holders: Vec<AtomicU32>,
    /// Per worker, the operations so far.
    done: Vec<AtomicU64>,
    /// Workers stop when this many operations are done by each.
    each: u64,
}

impl Round {
    fn new(random: &mut Random, operations: u64) -> Result<Self, undercroft_tags::ConfigError> {
        let depth = [1, 2, 3, 4, 8, 16, 24, 40, 64][random.below(9) as usize];
        let policy = [
            WakePolicy::Counters,
            WakePolicy::Counters,
            WakePolicy::CyclicBatches,
            WakePolicy::WakeOne,
            WakePolicy::WakeAll,
        ][random.below(5) as usize];
        let builder: Builder = TagSet::builder(depth)
            .policy(policy)
            .wait_queues(1 + random.below(8) as usize)
            .fair_sharing(random.below(4) == 0)
            .tag_caches(random.below(4) != 0)
            .threads_at_once(1 + random.below(4) as u32);
        let set = builder.build()?;
        let users = (0..3).map(|_| set.user()).collect();
        let holders = (0..set.depth()).map(|_| AtomicU32::new(0)).collect();
        let done = (0..WORKERS).map(|_| AtomicU64::new(0)).collect();
        let each = operations.div_ceil(WORKERS as u64);

        Ok(Self { set, users, holders, done, each })
    }

    fn operations(&self) -> u64 {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }

    /// Runs all workers; the set, should one be stuck.
    fn run(&self, seed: u64) -> Result<u64, String> {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| Worker::new(self, worker, seed ^ worker as u64))
                .collect();
            let workers: Vec<_> =
                workers.into_iter().map(|worker| scope.spawn(move || worker.work())).collect();
            let (mut last, mut since) = (0, Instant::now());
            while workers.iter().any(|worker| !worker.is_finished()) {
                thread::sleep(Duration::from_millis(20));
                let now = self.operations();
                if now != last {
                    (last, since) = (now, Instant::now());
                } else if since.elapsed() > STUCK {
                    // The sleepers cannot be joined; the process ends here.
                    println!("nobody has moved for {STUCK:?}: {:?}", self.set);
                    std::process::exit(1);
                }
            }
            for worker in workers {
                worker.join().map_err(|_| format!("a worker panicked on {:?}", self.set))?;
            }
            let free = (self.set.in_use(), self.set.waiting());
            if free != (0, 0) {
                return Err(format!(
                    "tags in use and waiters at the end: {free:?}: {:?}",
                    self.set
                ));
            }
            Ok(self.operations())
        })
    }
}

/// One thread.
struct Worker<'a> {
    round: &'a Round,
    number: usize,
    random: Random,
    caller: Caller,
    held: Vec<Tag>,
    operations: u64,
}

impl<'a> Worker<'a> {
    fn new(round: &'a Round, number: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let caller = match random.below(3) {
            0 => round.set.caller(),
            _ => round.users[number % round.users.len()].caller(),
        };
        Self { round, number, random, caller, held: Vec::new(), operations: 0 }
    }

    fn work(mut self) {
        while self.operations < self.round.each {
            self.step();
            self.round.done[self.number].store(self.operations, Ordering::Relaxed);
        }
        while !self.held.is_empty() {
            self.put();
        }
        self.round.done[self.number].store(self.operations, Ordering::Relaxed);
    }

    fn step(&mut self) {
        match self.random.below(1000) {
            // A worker that waits holds no tag: no other thread could put it (invariant I6).
            0..=79 => {
                while !self.held.is_empty() {
                    self.put();
                }
                let tag = self.caller.get_blocking();
                self.hold(tag);
            }
            80..=89 => {
                while !self.held.is_empty() {
                    self.put();
                }
                let patience = Duration::from_micros(self.random.below(50));
                if let Some(tag) = self.caller.get_timeout(patience) {
                    self.hold(tag);
                }
                self.operations += 1;
            }
            90..=599 => {
                if self.held.len() < MOST_HELD {
                    if let Some(tag) = self.caller.try_get() {
                        self.hold(tag);
                    }
                    self.operations += 1;
                }
            }
            600..=649 => {
                let tags = self.caller.try_get_batch(1 + self.random.below(8) as u32);
                self.operations += u64::from(tags.len());
                self.round.set.put_batch(tags);
                self.operations += u64::from(tags.len());
            }
            650..=994 => self.put(),
            995 => thread::yield_now(),
            996 if self.random.below(20) == 0 => {
                thread::sleep(Duration::from_micros(self.random.below(200)));
            }
            997 if self.random.below(50) == 0 => {
                self.round.users[self.number % self.round.users.len()].idle();
            }
            _ => {
                for _ in 0..self.random.below(300) {
                    std::hint::spin_loop();
                }
            }
        }
    }

    fn hold(&mut self, tag: Tag) {
        let before = self.round.holders[tag.index()].fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "tag {tag} has two holders");
        self.held.push(tag);
        self.operations += 1;
    }

    fn put(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let which = self.random.below(self.held.len() as u64) as usize;
        let tag = self.held.swap_remove(which);
        self.round.holders[tag.index()].fetch_sub(1, Ordering::Relaxed);
        if self.random.below(4) == 0 {
            self.round.set.put(tag);
        } else {
            self.caller.put(tag);
        }
        self.operations += 1;
    }
}

fn run(operations: u64, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let (mut done, mut rounds) = (0, 0);
    let started = Instant::now();
    while done < operations {
        let round = Round::new(&mut random, ROUND.min(operations - done))
            .map_err(|error| error.to_string())?;
        done += round.run(seed.wrapping_add(rounds))?;
        rounds += 1;
        let statistics = round.set.statistics();
        println!(
            "{done} operations, {:.0} s; depth {}, {} gets, {} sleeps",
            started.elapsed().as_secs_f64(),
            round.set.depth(),
            statistics.gets,
            statistics.sleeps
        );
    }
    println!("{done} operations in {rounds} rounds, seed {seed}: nobody was lost");
    Ok(())
}

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let outcome = match numbers.as_deref() {
        Ok([operations]) => run(*operations, 1),
        Ok([operations, seed]) => run(*operations, *seed),
        _ => Err("usage: soak_tags OPERATIONS [SEED]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
