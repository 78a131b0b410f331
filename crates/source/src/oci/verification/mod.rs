//! Digests of plain layers, compared while their data is on its way.

mod lanes;

use super::digest::Digest;
use super::error::{ImageProblem, Role};
use crate::region::Region;
use lanes::{LANES_MAX, Outcome};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::{io, thread};

/// Most threads; each hashes more than a disk reads.
const MAX_THREADS: usize = 4;

/// A digest that bytes should have.
pub(super) struct Claim {
    pub(super) role: Role,
    /// Name of the blob.
    pub(super) name: String,
    pub(super) region: Region,
    pub(super) digest: Digest,
    pub(super) claimed: Claimed,
}

/// Whose digest it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    Blob,
    /// The `diff_id` in the config.
    Uncompressed,
}

impl Claim {
    /// Compares; nothing is found when it need not go on.
    fn check(&self, go_on: &dyn Fn() -> bool) -> Result<(), ImageProblem> {
        self.digest.compute(&self.region, go_on).transpose().map_or(Ok(()), |it| self.verdict(it))
    }

    /// What it means that the bytes have the digest `found`, or could not be read.
    fn verdict(&self, found: io::Result<Digest>) -> Result<(), ImageProblem> {
        let (role, name, declared) = (self.role, self.name.clone(), self.digest.clone());
        match (found, self.claimed) {
            (Err(source), _) => Err(ImageProblem::Read { role, name, source }),
            (Ok(found), _) if found == declared => Ok(()),
            (Ok(found), Claimed::Blob) => Err(ImageProblem::Digest { role, declared, found }),
            (Ok(found), Claimed::Uncompressed) => {
                Err(ImageProblem::DiffId { role, blob: name, declared, found })
            }
        }
    }
}

/// Threads that compare digests. They stop when this is dropped.
pub(super) struct Verification {
    /// How many there are.
    claims: usize,
    results: Receiver<Outcome>,
    stop: Arc<AtomicBool>,
}

impl Verification {
    /// Starts to compare.
    pub(super) fn start(claims: Vec<Claim>) -> io::Result<Self> {
        // The consumer and the thread that reads ahead leave about half of the processors idle.
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let count = claims.len();
        let threads = (processors / 2).clamp(1, MAX_THREADS).min(count);
        // Several at a time only where there is no thread for each.
        let width = count.div_ceil(threads.max(1)).min(LANES_MAX);
        let mut claims: VecDeque<_> = claims.into_iter().enumerate().collect();
        // The longest first, so that none is left alone at the end.
        claims.make_contiguous().sort_by_key(|(_, claim)| Reverse(claim.region.length()));
        let (claims, stop) = (Arc::new(Mutex::new(claims)), Arc::<AtomicBool>::default());
        let (sender, results) = channel();
        let verification = Self { claims: count, results, stop: Arc::clone(&stop) };
        for _ in 0..threads {
            let (claims, sender, stop) = (Arc::clone(&claims), sender.clone(), Arc::clone(&stop));
            let run = move || {
                let next = || claims.lock().pop_front();
                let go_on = || !stop.load(Ordering::Relaxed);
                // Nobody takes outcomes any more once the source is dropped, which also stops this.
                lanes::run(width, &next, &go_on, &|outcome| drop(sender.send(outcome)));
            };
            thread::Builder::new().name("source-digest".into()).spawn(run)?;
        }
        Ok(verification)
    }

    /// Waits for all; the fault of the lowest layer.
    ///
    /// # Panics
    /// A thread has panicked: else a layer that was not compared would pass for a sound one.
    pub(super) fn finish(self) -> Result<(), ImageProblem> {
        let results: Vec<_> = self.results.iter().collect();
        assert!(results.len() == self.claims, "a thread that compares digests has panicked");
        let mut faults: Vec<_> = results
            .into_iter()
            .filter_map(|(number, result)| Some((number, result.err()?)))
            .collect();
        faults.sort_by_key(|(number, _)| *number);
        faults.into_iter().next().map_or(Ok(()), |(_, fault)| Err(fault))
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
