//! Disks in stores wherever a device is described.

use crate::chunked::Chunked;
use crate::client::Client;
use crate::disk_cache::{CacheOptions, DiskCache, PIECE};
use crate::driver::StoreDriver;
use crate::error::StoreError;
use crate::location::{Location, Scheme};
use crate::pool::{Note, Pool};
use crate::whole::Whole;
use parking_lot::Mutex;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::BlockDevice;
use undercroft_block::stack::{LeafOptions, NetworkKind, NetworkLeaf, register_network};

/// How disks in stores are read, for the whole process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where pieces are kept for later and for other processes.
    pub cache: Option<CacheOptions>,
    /// How long a request that fails is tried again, after growing pauses.
    pub patience: Duration,
    /// Told once what does not stop anything.
    pub note: fn(&str),
}

impl Default for Settings {
    /// Nothing is kept, failures are tried again for a minute, and nothing is told.
    fn default() -> Self {
        Self { cache: None, patience: Duration::from_secs(60), note: |_| () }
    }
}

static SETTINGS: Mutex<Option<Settings>> = Mutex::new(None);

/// Says how disks in stores are read that are opened from now on.
pub fn configure(settings: Settings) {
    *SETTINGS.lock() = Some(settings);
}

fn settings() -> Settings {
    SETTINGS.lock().clone().unwrap_or_default()
}

/// Makes URIs of stores usable wherever a stack of devices is described, for the whole process.
pub fn register() {
    register_network(NetworkKind::Object, open_leaf);
}

/// Checks a URI without looking for what it names.
///
/// # Errors
/// It names nothing that can be a disk.
pub fn check(uri: &str) -> Result<(), StoreError> {
    disk(uri).map(drop)
}

/// The place of a disk.
fn disk(uri: &str) -> Result<Location, StoreError> {
    let location = Location::parse(uri)?;
    let wrong = |why: &str| Err(StoreError::Location { text: uri.into(), why: why.into() });
    match (&location.reference, location.scheme) {
        (None, Scheme::Directory) => {
            wrong("name the file itself, or an image that was published there, DIRECTORY@NAME")
        }
        (None, _) if location.path.as_ref().is_empty() => {
            wrong("it names no object; an image that was published there has @NAME behind it")
        }
        _ => Ok(location),
    }
}

fn open_leaf(
    leaf: &NetworkLeaf,
    options: LeafOptions,
) -> Result<Arc<dyn BlockDevice>, Box<dyn Error + Send + Sync>> {
    Ok(open(&leaf.uri, options)?)
}

/// Opens the disk that a URI names: an object, or an image in chunks.
///
/// # Errors
/// It cannot be read, or is to be written.
pub fn open(uri: &str, options: LeafOptions) -> Result<Arc<dyn BlockDevice>, StoreError> {
    let location = disk(uri)?;
    if !options.read_only {
        return Err(StoreError::ReadOnly { uri: location.to_string() });
    }
    let Settings { cache, patience, note } = settings();
    let cache = cache.map(|options| DiskCache::open(&options)).transpose()?.map(Arc::new);
    let client = Client::new(&location, patience)?;
    let pool = match location.reference() {
        Some(reference) => {
            let chunked = Chunked::open(client, reference, cache.as_deref())?;
            Pool::new(Box::new(chunked), cache, note as Note)
        }
        None => {
            // With a cache the first piece may be there already.
            let ahead = if cache.is_some() { 1 } else { PIECE };
            let (whole, first) = Whole::open(client, ahead)?;
            let pool = Pool::new(Box::new(whole), cache, note as Note);
            if first.len() as u64 == pool.origin().piece_length(0) {
                pool.give(0, &first);
            }
            pool
        }
    };
    Ok(Arc::new(StoreDriver::start(pool, options.time_limit)?))
}
