//! All chunks of an image, held against its manifest.

use crate::digest::Digest;
use crate::error::StoreError;
use crate::repository::Repository;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Chunks that are read at a time.
const WORKERS: usize = 16;

/// What was verified.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Chunks that were read.
    pub chunks: u64,
    /// Those that are missing, altered or cannot be read, ascending.
    pub faults: Vec<ChunkFault>,
}

/// A chunk that is not as it should be.
#[derive(Clone, Debug)]
pub struct ChunkFault {
    /// Its number in the image: its bytes begin at 4 MiB times that.
    pub number: u64,
    /// What is wrong.
    pub error: StoreError,
}

/// Reads all chunks of an image. `progress` is told how many are done, and of how many.
///
/// # Errors
/// The manifest cannot be read.
pub fn verify(
    repository: &Repository,
    digest: &Digest,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Verified, StoreError> {
    let manifest = repository.manifest(digest)?;
    let chunks = manifest.chunks();
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let progress = Mutex::new((0, progress));
    let work = || {
        while let Some((number, digest)) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = repository.chunk(digest, manifest.chunk_length(*number)) {
                faults.lock().push(ChunkFault { number: *number, error });
            }
            let (done, tell) = &mut *progress.lock();
            *done += 1;
            tell(*done, chunks.len() as u64);
        }
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS.min(chunks.len()) {
            scope.spawn(work);
        }
    });
    let mut faults = faults.into_inner();
    faults.sort_unstable_by_key(|fault| fault.number);
    Ok(Verified { chunks: chunks.len() as u64, faults })
}
