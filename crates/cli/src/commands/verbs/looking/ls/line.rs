//! What is printed of an entry.

use super::Args;
use super::entry::Entry;
use crate::report;
use crate::session::Session;
use crate::text;
use anyhow::Result;
use serde::{Serialize, Serializer};
use std::io::Write;
use undercroft_fs::Metadata;
use undercroft_xfs::format::FileType;

/// An entry as JSON.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    path: text::Name,
    inode: u64,
    kind: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    long: Option<Long>,
}

/// What `--long` adds.
#[derive(Serialize)]
struct Long {
    mode: String,
    links: u32,
    uid: u32,
    gid: u32,
    size: u64,
    mtime: String,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_name")]
    target: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<(u32, u32)>,
}

/// The target of a symbolic link as JSON.
fn as_name<S: Serializer>(target: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
    target.as_deref().map(text::Name::new).serialize(to)
}

/// Prints an entry; `path` is its name and those of the directories above it.
pub(super) fn print(
    session: &Session<'_>,
    args: &Args,
    path: &[u8],
    entry: &Entry,
    out: &mut dyn Write,
) -> Result<()> {
    let long = entry.metadata.as_ref().filter(|_| args.long);
    let long = long.map(|metadata| long_of(session, metadata)).transpose()?;
    if args.json {
        let kind = entry.kind.map_or("unknown", text::kind);
        let line = Line { path: text::Name::new(path), inode: entry.number.0, kind, long };
        return Ok(report::json_line(out, &line)?);
    }
    if args.inode {
        write!(out, "{:>10} ", entry.number.0)?;
    }
    if let Some(long) = &long {
        let size = match long.device {
            Some((major, minor)) => format!("{major}, {minor}"),
            None => args.sizes.shown(long.size, 1),
        };
        let Long { mode, links, uid, gid, mtime, .. } = long;
        write!(out, "{mode} {links:>3} {uid:>5} {gid:>5} {size:>12} {mtime} ")?;
    }
    args.names.write(&entry.name, out)?;
    if args.classify {
        out.write_all(mark(entry))?;
    }
    if let Some(target) = long.and_then(|long| long.target) {
        out.write_all(b" -> ")?;
        args.names.write(&target, out)?;
    }
    Ok(args.names.end(out)?)
}

/// The mark behind a name that tells its kind, as `ls -F` has it.
fn mark(entry: &Entry) -> &'static [u8] {
    match entry.kind.or(entry.metadata.map(|file| file.kind)) {
        Some(FileType::Directory) => b"/",
        Some(FileType::Symlink) => b"@",
        Some(FileType::Fifo) => b"|",
        Some(FileType::Socket) => b"=",
        Some(FileType::Regular) if entry.metadata.is_some_and(|file| file.mode & 0o111 != 0) => {
            b"*"
        }
        _ => b"",
    }
}

fn long_of(session: &Session<'_>, file: &Metadata) -> Result<Long> {
    let target = match file.kind {
        FileType::Symlink => Some(session.fs.nodes().read_link(file.number)?),
        _ => None,
    };
    let device = matches!(file.kind, FileType::Character | FileType::Block)
        .then_some((file.device.major, file.device.minor));
    Ok(Long {
        mode: text::mode(file.kind, file.mode),
        links: file.nlink,
        uid: file.uid,
        gid: file.gid,
        size: file.size,
        mtime: text::time(file.modified),
        target,
        device,
    })
}
