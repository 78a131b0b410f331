//! A disk put into a store in chunks.
//!
//! Chunks first, the manifest when all of them are there, the name last: whatever ends this early leaves no
//! manifest that names a chunk which is missing.

use crate::client::{Put, Version};
use crate::digest::Digest;
use crate::error::{Fault, StoreError};
use crate::manifest::{CHUNK_BYTES, Manifest, ManifestError};
use crate::marker::{Marker, Work};
use crate::repository::Repository;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use undercroft_block::{BlockDevice, Buffer, SECTOR_SIZE, Sector, is_zero, read_buffer};

/// Chunks that are hashed, compressed and sent at a time.
const WORKERS: usize = 8;

/// What is published, and how.
#[derive(Clone, Debug, Default)]
pub struct PublishOptions {
    /// The name it gets; none is for those who know images by their digests.
    pub name: Option<String>,
    /// Bytes of the disk whose contents nobody needs, ascending: they are zeroes in what is published.
    pub free: Vec<Range<u64>>,
}

/// What was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The digest of the manifest.
    pub digest: Digest,
    /// Bytes of the disk.
    pub bytes: u64,
    /// Chunks that are not zeroes.
    pub chunks: u64,
    /// Those that were not there yet.
    pub new_chunks: u64,
}

struct Chunk {
    number: u64,
    content: Buffer,
}

/// What workers share.
struct Shared<'r> {
    repository: &'r Repository,
    /// Chunks that are there, or on their way.
    known: Mutex<HashSet<Digest>>,
    chunks: Mutex<Vec<(u64, Digest)>>,
    new_chunks: AtomicU64,
    error: Mutex<Option<StoreError>>,
}

/// Publishes a disk, which must not change meanwhile. `progress` is told how many bytes of it are done.
///
/// # Errors
/// The disk cannot be read, the store cannot be written, something is being pruned there, or another one has
/// moved the name meanwhile.
pub fn publish(
    repository: &Repository,
    disk: &dyn BlockDevice,
    options: &PublishOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Published, StoreError> {
    let bytes = disk.capacity().to_bytes().unwrap_or(0);
    // Before anything is written: a disk that no manifest can describe.
    Manifest::new(bytes, Vec::new()).map_err(|error| of_disk(disk, error))?;
    let mut marker = Marker::put(repository, Work::Publishing)?;
    let before = match &options.name {
        Some(name) => before(repository, name)?,
        None => None,
    };
    let shared = Shared {
        repository,
        known: Mutex::new(known(repository)?),
        chunks: Mutex::default(),
        new_chunks: AtomicU64::new(0),
        error: Mutex::default(),
    };
    send_chunks(&shared, disk, bytes, &options.free, &mut marker, progress)?;
    let mut chunks = shared.chunks.into_inner();
    chunks.sort_unstable();
    let count = chunks.len() as u64;
    let manifest = Manifest::new(bytes, chunks).map_err(|error| of_disk(disk, error))?.encode();
    let digest = Digest::of(&manifest);
    marker.keep()?;
    repository.client.put(&repository.manifest_path(&digest), manifest, Put::Any)?;
    if let Some(name) = &options.name {
        put_name(repository, name, &digest, before)?;
    }
    let new_chunks = shared.new_chunks.into_inner();
    Ok(Published { digest, bytes, chunks: count, new_chunks })
}

fn of_disk(disk: &dyn BlockDevice, error: ManifestError) -> StoreError {
    StoreError::Manifest { object: disk.name().to_owned(), error }
}

/// The version of a name that is there. One that is damaged may be replaced.
fn before(repository: &Repository, name: &str) -> Result<Option<Version>, StoreError> {
    repository.client.version(&repository.name_path(name))
}

/// Moves the name, unless another one has done that since it was looked at.
fn put_name(
    repository: &Repository,
    name: &str,
    digest: &Digest,
    before: Option<Version>,
) -> Result<(), StoreError> {
    let line = format!("sha256:{digest}\n").into_bytes();
    let how = before.map_or(Put::New, Put::Replace);
    match repository.client.put(&repository.name_path(name), line, how) {
        Err(StoreError::Request { fault: Fault::Conflict, .. }) => {
            // A request that was tried again may have been carried out the first time.
            match repository.named(name) {
                Ok((found, _)) if found == *digest => Ok(()),
                _ => Err(StoreError::Lost { name: name.to_owned(), digest: *digest }),
            }
        }
        done => done,
    }
}

/// The chunks that are there.
fn known(repository: &Repository) -> Result<HashSet<Digest>, StoreError> {
    let all = repository.client.list(&repository.path(&["chunks"]))?;
    let digests = all.iter().filter(|(_, version)| version.bytes > 0);
    Ok(digests.filter_map(|(path, _)| Digest::from_hex(path.filename()?)).collect())
}

fn send_chunks(
    shared: &Shared<'_>,
    disk: &dyn BlockDevice,
    bytes: u64,
    free: &[Range<u64>],
    marker: &mut Marker<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let (sender, receiver) = sync_channel(WORKERS);
    let receiver = Mutex::new(receiver);
    let read = thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(shared, &receiver));
        }
        // Dropped at the end of this, which ends the workers.
        let sender = sender;
        for number in 0..bytes.div_ceil(CHUNK_BYTES) {
            if shared.error.lock().is_some() {
                break;
            }
            marker.keep()?;
            if let Some(content) = content(disk, number, bytes, free)?
                && sender.send(Chunk { number, content }).is_err()
            {
                break;
            }
            progress(((number + 1) * CHUNK_BYTES).min(bytes));
        }
        Ok(())
    });
    match shared.error.lock().take() {
        Some(error) => Err(error),
        None => read,
    }
}

/// A chunk without what is free in it; `None` if that is zeroes.
fn content(
    disk: &dyn BlockDevice,
    number: u64,
    bytes: u64,
    free: &[Range<u64>],
) -> Result<Option<Buffer>, StoreError> {
    let start = number * CHUNK_BYTES;
    let end = (start + CHUNK_BYTES).min(bytes);
    let next = free.partition_point(|range| range.end <= start);
    let here = free[next..].iter().take_while(|range| range.start < end);
    if here.clone().any(|range| range.start <= start && range.end >= end) {
        return Ok(None);
    }
    let failed = |error| StoreError::local(format!("cannot read {}", disk.name()), &error);
    // No more than a chunk.
    let mut content =
        read_buffer(disk, Sector(start / SECTOR_SIZE), (end - start) as usize).map_err(failed)?;
    for range in here {
        let (from, to) = (range.start.max(start) - start, range.end.min(end) - start);
        content[from as usize..to as usize].fill(0);
    }
    Ok((!is_zero(&content)).then_some(content))
}

/// Sends chunks until there are no more, or one fails.
fn work(shared: &Shared<'_>, chunks: &Mutex<Receiver<Chunk>>) {
    loop {
        // One waits for the others, who take what comes.
        let next = chunks.lock().recv();
        let Ok(Chunk { number, content }) = next else { return };
        if shared.error.lock().is_some() {
            // The sender must not wait for room.
            continue;
        }
        let digest = Digest::of(&content);
        shared.chunks.lock().push((number, digest));
        if !shared.known.lock().insert(digest) {
            continue;
        }
        match shared.repository.put_chunk(&digest, &content) {
            Ok(()) => {
                shared.new_chunks.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                shared.error.lock().get_or_insert(error);
            }
        }
    }
}
