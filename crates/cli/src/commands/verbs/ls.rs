//! `undercroft ls`.

use super::Verb;
use crate::image::target_and_device;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::{Metadata, PathError};
use undercroft_xfs::format::{EntryType, FileType};
use undercroft_xfs::inode::InodeState;
use undercroft_xfs::ops;
use undercroft_xfs::ops::Position;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, TreeAhead, Volume, WalkOrder};

/// List a directory, sorted by name.
///
/// A symbolic link to a directory is followed if the path ends in it, but not with --long unless a
/// slash follows. Bytes of names that are not text are shown as escapes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    #[arg(default_value = "/")]
    path: OsString,

    /// Show mode, links, owner, size and modification time.
    #[arg(short, long)]
    long: bool,

    /// List the directories below as well.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// A name in a directory.
struct Entry {
    name: Vec<u8>,
    inode: InodeNumber,
    ftype: EntryType,
}

impl Verb for Args {
    fn changes(&self) -> bool {
        false
    }

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        list(self, session, out)?;
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

/// What the path is of: as `ls` has it, a symbolic link is one in a long listing, or if it leads to
/// no directory.
fn top(args: &Args, session: &Session<'_>) -> Result<Metadata, PathError> {
    let found = session.fs.symlink_metadata(&args.path)?;
    if !found.is_symlink() || args.long {
        return Ok(found);
    }
    let target = session.fs.metadata(&args.path);
    Ok(target.ok().filter(Metadata::is_dir).unwrap_or(found))
}

fn list(args: &Args, session: &Session<'_>, out: &mut dyn Write) -> Result<()> {
    let (path, volume) = (args.path.as_bytes(), session.volume);
    let top = top(args, session)?;
    let number = top.number;
    if !top.is_dir() {
        let entry = Entry { name: path.to_vec(), inode: number, ftype: EntryType::Unknown };
        print(volume, args, &[], &entry, out)?;
        return Ok(());
    }
    let mut seen = HashSet::new();
    let mut waiting = vec![(path.to_vec(), number)];
    let mut tree = args.recursive.then(|| TreeAhead::new(volume, number, WalkOrder::Names));
    while let Some((path, number)) = waiting.pop() {
        if let Some(tree) = &mut tree {
            tree.reach(number);
        }
        if !seen.insert(number) {
            bail!(
                "{}: directory {number} has two names; run `undercroft check`",
                ops::path_text(&path)
            );
        }
        let entries = entries(args, volume, number).with_context(|| ops::path_text(&path))?;
        if args.recursive && !args.json {
            let first = if seen.len() == 1 { "" } else { "\n" };
            writeln!(out, "{first}{}:", text::name(&path))?;
        }
        for entry in &entries {
            print(volume, args, &path, entry, out)
                .with_context(|| ops::path_text(&join(&path, &entry.name)))?;
        }
        if args.recursive {
            for entry in entries.into_iter().rev() {
                if is_directory(volume, &entry)? {
                    waiting.push((join(&path, &entry.name), entry.inode));
                }
            }
        }
    }
    Ok(())
}

fn entries(args: &Args, volume: &Volume, directory: InodeNumber) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let inode = volume.inode(directory).map_err(Error::into_damage)?;
    ops::entries(volume, &inode.read(), Position::START, |entry| {
        let (name, inode, ftype) = (entry.name.to_vec(), entry.inode, entry.ftype);
        entries.push(Entry { name, inode, ftype });
        true
    })?;
    if args.long || args.recursive {
        volume.prefetch_inodes(entries.iter().map(|entry| entry.inode));
    }
    entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}

fn is_directory(volume: &Volume, entry: &Entry) -> Result<bool> {
    Ok(match entry.ftype {
        EntryType::Unknown => {
            let inode = volume.inode(entry.inode).map_err(Error::into_damage)?;
            inode.read().file_type() == FileType::Directory
        }
        ftype => ftype == EntryType::Directory,
    })
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    if directory.is_empty() && name.starts_with(b"/") {
        return name.to_vec();
    }
    [directory, b"/", name].concat()
}

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
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<text::Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<(u32, u32)>,
}

fn print(
    volume: &Volume,
    args: &Args,
    directory: &[u8],
    entry: &Entry,
    out: &mut dyn Write,
) -> Result<()> {
    let long = args.long.then(|| long(volume, entry.inode)).transpose()?;
    if args.json {
        let path =
            if directory.is_empty() { entry.name.clone() } else { join(directory, &entry.name) };
        let kind = text::entry_kind(entry.ftype);
        let line = Line { path: text::Name::new(&path), inode: entry.inode.0, kind, long };
        return Ok(report::json_line(out, &line)?);
    }
    let name = text::name(&entry.name);
    let Some(long) = long else {
        return Ok(writeln!(out, "{name}")?);
    };
    let size = match long.device {
        Some((major, minor)) => format!("{major}, {minor}"),
        None => long.size.to_string(),
    };
    let Long { mode, links, uid, gid, mtime, .. } = &long;
    write!(out, "{mode} {links:>3} {uid:>5} {gid:>5} {size:>12} {mtime} {name}")?;
    if let Some(target) = &long.target {
        write!(out, " -> {target}")?;
    }
    Ok(writeln!(out)?)
}

fn long(volume: &Volume, number: InodeNumber) -> Result<Long> {
    let inode = volume.inode(number).map_err(Error::into_damage)?;
    let inode: &InodeState = &inode.read();
    let (core, kind) = (&inode.core, inode.file_type());
    let (target, device) = target_and_device(volume, inode)?;
    Ok(Long {
        mode: text::mode(kind, core.mode),
        links: core.nlink,
        uid: core.uid,
        gid: core.gid,
        size: core.size,
        mtime: text::time(core.mtime),
        target,
        device,
    })
}
