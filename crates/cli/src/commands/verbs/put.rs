//! `undercroft put`.

use super::Verb;
use crate::owner::NewOwner;
use crate::report::{self, Outcome};
use crate::session::{LastLink, Session};
use crate::text;
use crate::value;
use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use undercroft_fs::{
    Change, Error, FileSystem, FileType, NewFile, Owner, Place, RenameFlags, SetTime,
};
use undercroft_xfs::OpenFile;
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops::path_text;

/// Bytes of one write.
const CHUNK: usize = 4 << 20;

/// Copy a file of this machine into the volume.
///
/// If the path ends in a symbolic link, the file takes the place that it leads to. The file appears whole, or not at all: it gets its name when all of it is there. Holes stay
/// holes. For whole trees there is `undercroft build`.
///
/// For example: undercroft put root.img motd /etc/motd
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to copy, or - for standard input.
    source: OsString,

    /// Path in the volume, or a directory there to copy into.
    path: OsString,

    #[command(flatten)]
    last: LastLink,

    /// Replace a file that exists.
    #[arg(short, long)]
    force: bool,

    /// Permission bits in octal; those of the source if left out, 644 of standard input.
    #[arg(short, long, value_name = "MODE", value_parser = value::mode)]
    mode: Option<u16>,

    /// Owner and group by name or number, as `chown` takes them; a part left out is 0.
    #[arg(long, value_name = "USER:GROUP")]
    owner: Option<NewOwner>,

    /// Keep owner, group, and time of modification.
    #[arg(short, long)]
    preserve: bool,

    /// Print the path, the inode and the size as JSON.
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let stream = self.source == "-";
        let path = if stream {
            self.path.clone()
        } else {
            session.destination(&self.path, &self.source)?
        };
        let place = if self.last.no_follow {
            session.fs.place(&path)?
        } else {
            session.fs.place_followed(&path)?
        };
        place.expect_kind(FileType::Regular)?;
        match place.metadata() {
            Some(_) if !self.force => {
                bail!("{}: exists; use --force to replace it", path_text(path.as_bytes()))
            }
            Some(found) if found.is_dir() => {
                bail!("{}: is a directory", path_text(path.as_bytes()))
            }
            _ => {}
        }
        let unread = || format!("cannot read {}", self.source.display());
        let source =
            if stream { None } else { Some(File::open(&self.source).with_context(unread)?) };
        let attributes = if stream { None } else { Some(self.attributes()?) };
        let mode = self.mode.or(attributes.as_ref().map(|a| a.mode)).unwrap_or(0o644);
        let preserved = attributes.filter(|_| self.preserve);
        let owner = preserved.as_ref().map_or_else(Owner::default, |a| a.owner);
        let owner = NewOwner::of_new(self.owner.as_ref(), session, owner)?;
        let failed = |error| place.failed(error);
        // Without a name it is freed when it is closed.
        let new = NewFile { mode, owner };
        let file = session.fs.nodes().tmpfile(place.directory().number(), &new).map_err(failed)?;
        fill(session, file.open_file(), source.as_ref()).map_err(|error| match error {
            Fault::Source(error) => error.context(unread()),
            Fault::Volume(error) => {
                let path = path_text(path.as_bytes());
                anyhow!(error).context(format!("cannot write {path}"))
            }
        })?;
        if let Some(preserved) = preserved {
            let modified = Some(SetTime::To(preserved.modification));
            let change = Change { modified, ..Change::default() };
            file.set_attributes(&change).map_err(failed)?;
        }
        give_name(&session.fs, &file, &place).map_err(failed)?;
        if self.json {
            let path = text::Name::new(path.as_bytes());
            let line = Line { path, inode: file.number().0, bytes: file.size() };
            report::json_line(out, &line)?;
        }
        file.close().map_err(failed)?;
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

/// The new file as JSON.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    path: text::Name,
    inode: u64,
    bytes: u64,
}

/// The metadata that a file takes over from its source.
struct Attributes {
    mode: u16,
    owner: Owner,
    modification: Timestamp,
}

impl Args {
    fn attributes(&self) -> Result<Attributes> {
        let source = self.source.display();
        let metadata =
            std::fs::metadata(&self.source).with_context(|| format!("cannot read {source}"))?;
        if metadata.is_dir() {
            bail!("{source}: is a directory; `undercroft build` packs whole trees");
        }
        let nanoseconds = u32::try_from(metadata.mtime_nsec()).unwrap_or(0);
        Ok(Attributes {
            mode: (metadata.mode() & 0o7777) as u16,
            owner: Owner { uid: metadata.uid(), gid: metadata.gid() },
            modification: Timestamp { seconds: metadata.mtime(), nanoseconds },
        })
    }
}

/// Which side a copy failed at.
enum Fault {
    Source(anyhow::Error),
    Volume(Error),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Source(error.into())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Volume(error)
    }
}

/// Copies the contents of a file, or of standard input.
fn fill(session: &Session<'_>, file: &OpenFile, source: Option<&File>) -> Result<(), Fault> {
    let now = session.now();
    match source {
        Some(source) if source.metadata()?.is_file() => fill_from_file(file, source, now),
        Some(mut source) => fill_from_stream(file, &mut source, now),
        None => fill_from_stream(file, &mut std::io::stdin().lock(), now),
    }?;
    Ok(file.trim()?)
}

fn fill_from_stream(target: &OpenFile, source: &mut dyn Read, now: Timestamp) -> Result<(), Fault> {
    let mut offset = 0;
    loop {
        let mut bytes = Vec::with_capacity(CHUNK);
        source.take(CHUNK as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let len = bytes.len();
        target.write_direct(offset, &Arc::new(bytes), 0..len, now)?;
        offset += len as u64;
    }
}

/// Copies the stored parts of a file, and leaves its holes out.
fn fill_from_file(target: &OpenFile, mut source: &File, now: Timestamp) -> Result<(), Fault> {
    let size = source.metadata()?.len();
    let mut at = 0;
    while at < size {
        let Some(start) = seek(source, rustix::fs::SeekFrom::Data(at))? else { break };
        let end = seek(source, rustix::fs::SeekFrom::Hole(start))?.unwrap_or(size).min(size);
        source.seek(SeekFrom::Start(start))?;
        at = start;
        while at < end {
            let len = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let mut bytes = Vec::with_capacity(len);
            source.take(len as u64).read_to_end(&mut bytes)?;
            let len = bytes.len();
            if len == 0 {
                return Err(Fault::Source(anyhow!("the file became shorter while it was read")));
            }
            target.write_direct(at, &Arc::new(bytes), 0..len, now)?;
            at += len as u64;
        }
    }
    // A hole at the end.
    Ok(target.truncate(size, now)?)
}

/// Where the next data or hole starts; `None` behind the last.
fn seek(file: &File, to: rustix::fs::SeekFrom) -> std::io::Result<Option<u64>> {
    match rustix::fs::seek(file, to) {
        Ok(at) => Ok(Some(at)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives the new file its name: at once where there is none yet, else it gets another name first
/// and takes the place of the old one.
fn give_name(fs: &FileSystem, file: &undercroft_fs::File, place: &Place) -> Result<(), Error> {
    let directory = place.directory().number();
    if place.metadata().is_none() {
        return fs.nodes().link_file(file, directory, place.name()).map(drop);
    }
    let other = format!(".undercroft-put-{}", file.number()).into_bytes();
    fs.nodes().link_file(file, directory, &other)?;
    let renamed =
        fs.nodes().rename((directory, &other), (directory, place.name()), RenameFlags::REPLACE);
    renamed.inspect_err(|_| {
        // The first error counts.
        let _ = fs.nodes().unlink(directory, &other);
    })
}
