//! A listing as mtree(5), such that bsdtar and mtree read it.

use super::{Item, Listing};
use crate::Kind;
use crate::description::{NAMES_TAG, vis};
use std::io::{self, Write};

impl Listing {
    /// Writes mtree(5), with digests of SHA-256. Names of one file share a tag, since mtree knows no
    /// numbers of inodes: it has the first of them. Extended attributes have no place; returns how many there were.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn mtree(&self, out: &mut dyn Write) -> io::Result<u64> {
        writeln!(out, "#mtree v2.0")?;
        let mut left_out = 0;
        for item in self.items() {
            write(&item, out)?;
            if item.first.is_none() {
                left_out += item.xattrs.len() as u64;
            }
        }
        Ok(left_out)
    }
}

fn write(item: &Item<'_>, out: &mut dyn Write) -> io::Result<()> {
    let kind = match item.kind {
        Kind::Directory => "dir",
        Kind::Regular { .. } | Kind::HardLink(_) => "file",
        Kind::Symlink(_) => "link",
        Kind::CharDevice(_) => "char",
        Kind::BlockDevice(_) => "block",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
    };
    write!(out, ".")?;
    for name in item.path.components() {
        write!(out, "/{}", vis(name))?;
    }
    let metadata = item.metadata;
    write!(
        out,
        " type={kind} mode={:04o} uid={} gid={} time={}.{:09}",
        metadata.mode,
        metadata.uid,
        metadata.gid,
        metadata.mtime.seconds,
        metadata.mtime.nanoseconds
    )?;
    if item.links > 1 {
        // Commas stand between tags.
        let first = vis(item.first.unwrap_or(item.path).as_bytes()).replace(',', "\\054");
        write!(out, " nlink={} tags={NAMES_TAG}/{first}", item.links)?;
    }
    match item.kind {
        Kind::Regular { size, .. } => write!(out, " size={size}")?,
        Kind::Symlink(target) => write!(out, " link={}", vis(target))?,
        Kind::CharDevice(device) | Kind::BlockDevice(device) => {
            write!(out, " device=native,{},{}", device.major, device.minor)?;
        }
        _ => {}
    }
    match item.digest {
        Some(digest) => writeln!(out, " sha256digest={digest}"),
        None => writeln!(out),
    }
}
