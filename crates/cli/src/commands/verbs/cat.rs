//! `undercroft cat`.

use super::Verb;
use crate::report::{self, Outcome};
use crate::session::{LastLink, Session};
use crate::text;
use anyhow::{Context, Result};
use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fstat, ftruncate, seek, tell};
use rustix::stdio::stdout;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::PathError;
use undercroft_xfs::{OpenFile, ReadPattern};

/// Print the contents of files.
///
/// As JSON, each piece of a file is an object with its place and
/// its text, or its bytes in hexadecimal where they are no text; holes are left out, and the last
/// object of a file says how long it is.
///
/// For example: undercroft cat root.img /etc/fstab
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    #[command(flatten)]
    last: LastLink,

    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// A piece of a file as JSON.
#[derive(Serialize)]
struct Piece<'p> {
    path: &'p text::Name,
    offset: u64,
    #[serde(flatten)]
    content: Content<'p>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Content<'p> {
    Text(&'p str),
    Hex(String),
}

/// The end of a file as JSON.
#[derive(Serialize)]
struct End<'p> {
    path: &'p text::Name,
    bytes: u64,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        for paths in session.matching(&self.path)?.chunks(TOGETHER) {
            for (path, file) in paths.iter().zip(session.open_all(paths, self.last)) {
                print(file?.open_file(), path, self.json, out)?;
            }
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

/// Files that are opened together.
const TOGETHER: usize = 256;

/// Prints the contents of a file.
pub(super) fn print(file: &OpenFile, path: &OsStr, json: bool, out: &mut dyn Write) -> Result<()> {
    // What is no regular file cannot be read at all.
    file.read(0, &mut []).map_err(|error| PathError::new(path, error))?;
    file.expect_reads(ReadPattern::Sequential);
    if json { pieces(file, path, out) } else { copy(file, path, out) }
}

/// Prints the contents of a file as JSON.
fn pieces(file: &OpenFile, path: &OsStr, out: &mut dyn Write) -> Result<()> {
    let failed = |error| PathError::new(path, error);
    let path = &text::Name::new(path.as_bytes());
    let mut buffer = vec![0; CHUNK];
    for range in file.data_ranges().map_err(failed)? {
        let mut offset = range.start;
        while offset < range.end {
            let wanted = usize::try_from(range.end - offset).unwrap_or(CHUNK).min(CHUNK);
            let len = file.read(offset, &mut buffer[..wanted]).map_err(failed)?;
            if len == 0 {
                break;
            }
            let (content, len) = content(&buffer[..len]);
            report::json_line(out, &Piece { path, offset, content })?;
            offset += len as u64;
        }
    }
    let bytes = file.inode().read().core.size;
    Ok(report::json_line(out, &End { path, bytes })?)
}

/// What bytes are, and how many of them: a character that the last ones begin is left for later.
fn content(bytes: &[u8]) -> (Content<'_>, usize) {
    let text = match str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match text.filter(|text| !text.is_empty()) {
        Some(text) => (Content::Text(text), text.len()),
        None => (Content::Hex(text::hex(bytes)), bytes.len()),
    }
}

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// Copies the contents of a file.
fn copy(file: &OpenFile, path: &OsStr, out: &mut dyn Write) -> Result<()> {
    let failed = |error| PathError::new(path, error);
    let ranges = file.data_ranges().map_err(failed)?;
    let size = file.inode().read().core.size;
    let mut memory = Vec::new();
    let mut offset = 0;
    for range in ranges {
        holes(range.start.saturating_sub(offset), out)?;
        let write = |_, bytes: &[u8]| out.write_all(bytes);
        offset = range.start + file.lend(range.clone(), &mut memory, write).map_err(failed)??;
        if offset < range.end {
            return Ok(());
        }
    }
    holes(size.saturating_sub(offset), out)
}

/// Prints zeros, or leaves them out where a file is written that ends here: it gets a hole.
fn holes(len: u64, out: &mut dyn Write) -> Result<()> {
    if len >= CHUNK as u64 {
        out.flush()?;
        if skip(len).context("cannot write standard output")? {
            return Ok(());
        }
    }
    io::copy(&mut io::repeat(0).take(len), out)?;
    Ok(())
}

/// Makes the file that is standard output longer by a hole, and goes to its end; `false` if it is no
/// such file, or goes on behind the place that is written.
fn skip(len: u64) -> io::Result<bool> {
    let stdout = stdout();
    let status = fstat(stdout)?;
    let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    if !is_file || fcntl_getfl(stdout)?.contains(OFlags::APPEND) {
        return Ok(false);
    }
    let at = tell(stdout)?;
    if at < u64::try_from(status.st_size).unwrap_or(u64::MAX) {
        return Ok(false);
    }
    let end = at.saturating_add(len);
    ftruncate(stdout, end)?;
    seek(stdout, SeekFrom::Start(end))?;
    Ok(true)
}
