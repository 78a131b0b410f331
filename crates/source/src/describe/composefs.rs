//! A listing as composefs-dump(5).

use super::{Item, Listing, device_number};
use crate::description::escape;
use crate::{EntryPath, Kind};
use std::io::{self, Write};

impl Listing {
    /// Writes composefs-dump(5). The payload of a file is its path, so that the tree itself has the
    /// contents; its digest is that of fs-verity, with which the listing has to be taken.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn composefs(&self, out: &mut dyn Write) -> io::Result<()> {
        // Names in a directory, for its count of links.
        let mut subdirectories = rustc_hash::FxHashMap::<&[u8], u32>::default();
        for item in self.items().filter(|item| *item.kind == Kind::Directory) {
            if let Some((parent, _)) = item.path.split_last() {
                *subdirectories.entry(parent).or_default() += 1;
            }
        }
        self.items().try_for_each(|item| {
            let below = subdirectories.get(item.path.as_bytes()).copied().unwrap_or_default();
            let links = if *item.kind == Kind::Directory { 2 + below } else { item.links };
            write(&item, links, out)
        })
    }
}

fn write(item: &Item<'_>, links: u32, out: &mut dyn Write) -> io::Result<()> {
    let (kind, size, device) = match item.kind {
        Kind::Directory => (0o040_000, 0, 0),
        Kind::Regular { size, .. } => (0o100_000, *size, 0),
        Kind::HardLink(_) => (0o100_000, 0, 0),
        Kind::Symlink(target) => (0o120_000, target.len() as u64, 0),
        Kind::CharDevice(device) => (0o020_000, 0, device_number(device)),
        Kind::BlockDevice(device) => (0o060_000, 0, device_number(device)),
        Kind::Fifo => (0o010_000, 0, 0),
        Kind::Socket => (0o140_000, 0, 0),
    };
    let payload = match (item.first, item.kind) {
        (Some(first), _) => path(first),
        (None, Kind::Symlink(target)) => escape(target, false),
        (None, Kind::Regular { size: 1.., .. }) => escape(item.path.as_bytes(), false),
        _ => "-".to_owned(),
    };
    let digest = item.digest.filter(|_| size > 0).unwrap_or("-");
    let metadata = item.metadata;
    write!(
        out,
        "{} {size} {}{:o} {links} {} {} {device} {}.{:09} {payload} - {digest}",
        path(item.path),
        if item.first.is_some() { "@" } else { "" },
        kind | u32::from(metadata.mode),
        metadata.uid,
        metadata.gid,
        metadata.mtime.seconds,
        metadata.mtime.nanoseconds,
    )?;
    for xattr in item.xattrs {
        write!(out, " {}={}", escape(&xattr.name, true), escape(&xattr.value, false))?;
    }
    writeln!(out)
}

/// A path from the root.
fn path(path: &EntryPath) -> String {
    escape(&[b"/", path.as_bytes()].concat(), false)
}
