//! Markers of what is under way at a prefix, so that nothing is removed that is being published.
//!
//! Who publishes and who prunes puts a marker first, and looks for those of the other kind then. Of two that begin
//! at the same time, one sees the other at least. Times are those of the store alone: clocks of machines need not
//! agree. A marker that is not renewed stops to count, so one of a process that was killed is no obstacle for long.

use crate::client::Put;
use crate::error::StoreError;
use crate::repository::Repository;
use object_store::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a marker counts after it was put, in hours.
const HOURS: u64 = 1;
/// The age at which it is put anew.
const RENEWAL: Duration = Duration::from_secs(10 * 60);
/// The age from which its owner does not trust it any more: well before others ignore it.
const DOUBT: Duration = Duration::from_secs(30 * 60);

const NANOSECONDS: i64 = 1_000_000_000;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Publishing,
    Pruning,
}

impl Work {
    const fn directory(self) -> &'static str {
        match self {
            Self::Publishing => "publishing",
            Self::Pruning => "pruning",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Publishing => "a publication",
            Self::Pruning => "a prune",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Publishing => Self::Pruning,
            Self::Pruning => Self::Publishing,
        }
    }
}

/// The marker of this process.
pub(crate) struct Marker<'r> {
    repository: &'r Repository,
    path: Path,
    /// When it was put last, by two clocks: one goes on while a machine sleeps, one cannot be set back.
    put: (Instant, SystemTime),
    /// When that was by the clock of the store, in nanoseconds since 1970.
    pub(crate) now: i64,
}

impl<'r> Marker<'r> {
    /// Puts a marker, and makes sure that the other kind of work is not under way.
    pub(crate) fn put(repository: &'r Repository, work: Work) -> Result<Self, StoreError> {
        let path = repository.path(&[work.directory(), &unique()]);
        let mut marker =
            Self { repository, path, put: (Instant::now(), SystemTime::now()), now: 0 };
        marker.renew()?;
        marker.check(work.other())?;
        Ok(marker)
    }

    fn renew(&mut self) -> Result<(), StoreError> {
        self.put = (Instant::now(), SystemTime::now());
        let client = &self.repository.client;
        client.put(&self.path, b"undercroft\n".to_vec(), Put::Any)?;
        let name = client.name(&self.path);
        let version = client.version(&self.path)?;
        let why = "the store does not show what was just written there";
        self.now = version.ok_or_else(|| StoreError::local(name, &why))?.modified;
        Ok(())
    }

    /// Fails if other work is under way.
    fn check(&self, other: Work) -> Result<(), StoreError> {
        let client = &self.repository.client;
        let limit = HOURS as i64 * 3600 * NANOSECONDS;
        let all = client.list(&self.repository.path(&[other.directory()]))?;
        let Some((path, version)) =
            all.into_iter().find(|(_, version)| self.now - version.modified < limit)
        else {
            return Ok(());
        };
        Err(StoreError::Busy {
            what: other.name(),
            prefix: self.repository.uri(),
            since: age(self.now - version.modified),
            marker: client.name(&path),
            hours: HOURS,
        })
    }

    /// Keeps it from growing old. Fails if it was old already, since others may have gone on then.
    pub(crate) fn keep(&mut self) -> Result<(), StoreError> {
        let by_date = self.put.1.elapsed().unwrap_or(Duration::MAX);
        let age = self.put.0.elapsed().max(by_date);
        if age > DOUBT {
            let what = self.repository.client.name(&self.path);
            let why =
                "this process stood still for so long that others may have gone on; begin again";
            return Err(StoreError::local(what, &why));
        }
        if age > RENEWAL { self.renew() } else { Ok(()) }
    }
}

impl Drop for Marker<'_> {
    fn drop(&mut self) {
        // One that stays stops to count.
        let _ = self.repository.client.delete(&self.path);
    }
}

/// A name that no other process has.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{time:x}-{:x}-{number:x}", std::process::id())
}

fn age(nanoseconds: i64) -> String {
    let minutes = nanoseconds.max(0) / NANOSECONDS / 60;
    if minutes == 0 { "less than a minute".into() } else { format!("{minutes} minutes") }
}
