//! The names in a directory, in the order of a listing.

use crate::session::Session;
use anyhow::Result;
use std::cmp::Ordering;
use undercroft_fs::Metadata;
use undercroft_xfs::Error;
use undercroft_xfs::format::FileType;
use undercroft_xfs::units::InodeNumber;

/// A name in a directory.
pub(in super::super) struct Entry {
    pub(in super::super) name: Vec<u8>,
    pub(in super::super) number: InodeNumber,
    /// As the directory records it.
    pub(in super::super) kind: Option<FileType>,
    /// Where the listing needs it.
    pub(in super::super) metadata: Option<Metadata>,
}

/// In which order names are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Order {
    Names,
    /// The largest first.
    Sizes,
    /// The newest first.
    Times,
}

/// What a listing has.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Wanted {
    /// `.` and `..` as well.
    pub(in super::super) dots: bool,
    pub(in super::super) metadata: bool,
    pub(in super::super) order: Order,
    pub(in super::super) reverse: bool,
}

impl Entry {
    /// Of a file that is there.
    pub(in super::super) fn of(name: Vec<u8>, metadata: Metadata) -> Self {
        let Metadata { number, kind, .. } = metadata;
        Self { name, number, kind: Some(kind), metadata: Some(metadata) }
    }

    pub(in super::super) fn is_dot(&self) -> bool {
        self.name == b"." || self.name == b".."
    }

    pub(in super::super) fn is_directory(&self, session: &Session<'_>) -> Result<bool, Error> {
        let kind = match (self.kind, &self.metadata) {
            (Some(kind), _) => kind,
            (None, Some(metadata)) => metadata.kind,
            (None, None) => stat(session, self.number)?.kind,
        };
        Ok(kind == FileType::Directory)
    }
}

/// The entries of a directory.
pub(in super::super) fn entries(
    session: &Session<'_>,
    directory: InodeNumber,
    wanted: Wanted,
) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    let nodes = session.fs.nodes();
    nodes.readdir(directory, 0, |entry| {
        let found = Entry {
            name: entry.name.to_vec(),
            number: entry.number,
            kind: entry.kind,
            metadata: None,
        };
        if wanted.dots || !found.is_dot() {
            entries.push(found);
        }
        true
    })?;
    if wanted.metadata || wanted.order != Order::Names {
        session.volume.prefetch_inodes(entries.iter().map(|entry| entry.number));
        for entry in &mut entries {
            entry.metadata = Some(stat(session, entry.number)?);
        }
    }
    entries.sort_unstable_by(|left, right| {
        let order = compare(left, right, wanted.order);
        if wanted.reverse { order.reverse() } else { order }
    });
    Ok(entries)
}

fn compare(left: &Entry, right: &Entry, order: Order) -> Ordering {
    let by = |key: fn(&Metadata) -> (i64, u64)| {
        let key = |entry: &Entry| entry.metadata.as_ref().map(key);
        key(right).cmp(&key(left))
    };
    let first = match order {
        Order::Names => Ordering::Equal,
        Order::Sizes => by(|file| (0, file.size)),
        Order::Times => by(|file| (file.modified.seconds, file.modified.nanoseconds.into())),
    };
    first.then_with(|| left.name.cmp(&right.name))
}

/// The metadata of a file that a directory names.
fn stat(session: &Session<'_>, number: InodeNumber) -> Result<Metadata, Error> {
    session.fs.nodes().stat(number).map_err(Error::into_damage)
}
