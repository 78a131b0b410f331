//! Digests of plain layers, compared while their data is on its way.

use super::digest::Digest;
use super::error::{ImageProblem, Role};
use crate::region::Region;
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
        let (role, name) = (self.role, self.name.clone());
        let found = self.digest.compute(&self.region, go_on);
        let found = found.map_err(|source| ImageProblem::Read { role, name, source })?;
        let declared = self.digest.clone();
        match (found, self.claimed) {
            (None, _) => Ok(()),
            (Some(found), _) if found == declared => Ok(()),
            (Some(found), Claimed::Blob) => Err(ImageProblem::Digest { role, declared, found }),
            (Some(found), Claimed::Uncompressed) => {
                Err(ImageProblem::DiffId { role, blob: self.name.clone(), declared, found })
            }
        }
    }
}

/// Threads that compare digests. They stop when this is dropped.
pub(super) struct Verification {
    /// How many there are.
    claims: usize,
    results: Receiver<(usize, Result<(), ImageProblem>)>,
    stop: Arc<AtomicBool>,
}

impl Verification {
    /// Starts to compare.
    pub(super) fn start(claims: Vec<Claim>) -> io::Result<Self> {
        // The consumer and the thread that reads ahead leave about half of the processors idle.
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let count = claims.len();
        let threads = (processors / 2).clamp(1, MAX_THREADS).min(count);
        let claims: VecDeque<_> = claims.into_iter().enumerate().collect();
        let (claims, stop) = (Arc::new(parking_lot::Mutex::new(claims)), Arc::default());
        let (sender, results) = channel();
        let verification = Self { claims: count, results, stop: Arc::clone(&stop) };
        for _ in 0..threads {
            let (claims, sender, stop) = (Arc::clone(&claims), sender.clone(), Arc::clone(&stop));
            let run = move || {
                let go_on = || !stop.load(Ordering::Relaxed);
                while go_on() {
                    let Some((number, claim)) = claims.lock().pop_front() else { return };
                    if sender.send((number, claim.check(&go_on))).is_err() {
                        return;
                    }
                }
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
