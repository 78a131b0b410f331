//! Every fuzz target, run over fixed inputs: the empty one, sound blocks of every kind, and a
//! thousand that a generator with a fixed seed makes.

use std::time::{Duration, Instant};
use undercroft_fuzz_targets::{TARGETS, Target};

/// Inputs for each target; volumes take longer than blocks. `cargo xtask soak fuzz` has more.
const INPUTS: usize = 1500;
const VOLUMES: usize = 600;
/// Bytes of the longest input.
const LONGEST: usize = 96;
/// Memory that the process may have: all samples and one volume take a small part of it.
const MEMORY: u64 = 2 << 30;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// A number in the places and sizes where formats have their limits.
    fn byte(&mut self) -> u8 {
        const EDGES: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, 16];
        if self.below(2) == 0 { EDGES[self.below(EDGES.len())] } else { self.next() as u8 }
    }

    /// Short patches are likelier than long ones.
    fn input(&mut self) -> Vec<u8> {
        let mut input: Vec<u8> = (0..4).map(|_| self.next() as u8).collect();
        let limit = 1 + self.below(LONGEST);
        while input.len() < limit {
            let verb = [self.below(8) as u8, 0x80 | self.below(4) as u8, 0xc0][self.below(3)];
            input.push(verb);
            input.extend((0..4).map(|_| self.next() as u8));
            let tail = if verb < 0x80 { usize::from(verb) + 1 } else { 3 };
            input.extend((0..tail).map(|_| self.byte()));
        }
        input
    }
}

/// Runs a target on an input; a defect is reported with the input that shows it.
fn feed(name: &str, run: fn(&[u8]), input: &[u8]) {
    let started = Instant::now();
    if std::panic::catch_unwind(|| run(input)).is_err() {
        panic!("target {name} fails on {}", input.escape_ascii());
    }
    // Not a measurement: an input takes milliseconds, so this is an endless loop that ended.
    let taken = started.elapsed();
    assert!(taken < Duration::from_secs(20), "target {name} hangs on {}", input.escape_ascii());
}

fn limit_memory() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::As, limit).expect("a process may limit itself");
}

fn run_all(volumes: bool, inputs: usize) {
    limit_memory();
    let of_volumes =
        |target: &&Target| ["open_and_walk", "removed_files", "repair"].contains(&target.name);
    for target in TARGETS.iter().filter(|target| of_volumes(target) == volumes) {
        let mut random = Random(42);
        feed(target.name, target.run, &[]);
        // Sound blocks of every kind in every sample.
        for sample in 0..4 {
            for kind in 0..7 {
                for block in 0..4 {
                    feed(target.name, target.run, &[kind, sample, 0, block]);
                    feed(target.name, target.run, &[sample, 0, block]);
                }
            }
        }
        for _ in 0..inputs {
            feed(target.name, target.run, &random.input());
        }
    }
}

#[test]
fn decoders_answer_every_input() {
    run_all(false, INPUTS);
}

#[test]
fn damaged_volumes_are_answered() {
    run_all(true, VOLUMES);
}

#[test]
fn sound_volumes_are_clean() {
    let target = TARGETS.iter().find(|target| target.name == "open_and_walk").unwrap();
    for sample in 0..4 {
        // The target itself asserts that a volume without patches is clean.
        (target.run)(&[0, sample]);
    }
}
