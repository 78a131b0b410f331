//! Files that were found, as lines and as JSON.

use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_recover::{FoundFile, Path, SizeFrom};
use undercroft_xfs::format::{FileType, Timestamp};

/// A file as JSON.
#[derive(Serialize)]
pub(super) struct FoundJson {
    paths: Vec<text::Name>,
    /// The first name of each path is a directory of the volume; else a number of one.
    complete: bool,
    inode: u64,
    generation: u32,
    kind: Option<&'static str>,
    state: &'static str,
    size: u64,
    size_from: &'static str,
    removed: Option<String>,
    modified: String,
    uid: u32,
    gid: u32,
    mode: Option<String>,
    lost: Vec<[u64; 2]>,
}

impl FoundJson {
    pub(super) fn new(file: &FoundFile) -> Self {
        Self {
            paths: file.paths.iter().map(|path| text::Name::new(&joined(path))).collect(),
            complete: file.paths.first().is_some_and(|path| path.is_complete),
            inode: file.id.number.0,
            generation: file.id.generation,
            kind: file.kind.map(text::kind),
            state: file.state.name(),
            size: file.size,
            size_from: match file.size_from {
                SizeFrom::Inode => "inode",
                SizeFrom::Journal => "journal",
                SizeFrom::Blocks => "blocks",
            },
            removed: file.removed_at.map(text::time),
            modified: text::time(file.mtime),
            uid: file.uid,
            gid: file.gid,
            mode: file.mode.map(|mode| format!("{mode:04o}")),
            lost: file.losses.iter().map(|loss| [loss.start, loss.end]).collect(),
        }
    }
}

/// A path as one name.
pub(super) fn joined(path: &Path) -> Vec<u8> {
    let start: &[u8] = if path.is_complete { b"/" } else { b"?/" };
    [start, &path.names.join(&b'/')].concat()
}

/// Prints the paths of a file alone, each with a byte of zero behind it.
pub(super) fn print_paths(file: &FoundFile, out: &mut dyn Write) -> Result<()> {
    let nameless = || format!("?/{}", file.id).into_bytes();
    let paths = file.paths.iter().map(joined);
    let none = file.paths.is_empty().then(nameless);
    for path in paths.chain(none) {
        out.write_all(&path)?;
        out.write_all(b"\0")?;
    }
    Ok(())
}

/// Prints the line of a file, with a time.
pub(super) fn print_found(
    file: &FoundFile,
    time: Option<Timestamp>,
    out: &mut dyn Write,
) -> Result<()> {
    let kind = file.kind.unwrap_or(FileType::Regular);
    let mode = file.mode.map_or_else(
        || format!("{}?????????", &text::mode(kind, 0)[..1]),
        |mode| text::mode(kind, mode),
    );
    let about = if file.size_from == SizeFrom::Blocks { "~" } else { "" };
    let size = format!("{about}{}", file.size);
    let time = time.map_or("-".to_owned(), text::time);
    let time = time.split_once('.').map_or(time.as_str(), |(seconds, _)| seconds);
    write!(
        out,
        "{:<7}  {mode}  {:>5} {:>5}  {size:>12}  {time:>19} ",
        file.state.name(),
        file.uid,
        file.gid
    )?;
    if file.paths.is_empty() {
        write!(out, " ?/{}", file.id)?;
    }
    for path in &file.paths {
        write!(out, " {}", text::name(&joined(path)))?;
    }
    if let Some(target) = file.target() {
        write!(out, " -> {}", text::name(target))?;
    }
    Ok(writeln!(out)?)
}
