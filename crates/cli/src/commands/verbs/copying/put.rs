//! `undercroft put`.

use super::fill::{Fault, fill};
use super::tree;
use crate::commands::verbs::Verb;
use crate::owner::NewOwner;
use crate::report::{self, Outcome};
use crate::session::{LastLink, Session};
use crate::text;
use crate::value;
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueHint;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use undercroft_block::stack::DeviceReport;
use undercroft_fs::{
    Change, Error, FileSystem, FileType, NewFile, Owner, Place, RenameFlags, SetTime,
};
use undercroft_image::WithoutImage;
use undercroft_image::copy::CopyOptions;
use undercroft_source::{SourceOptions, SourceSpec};
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops::path_text;

/// Copy a file, or with -r a directory, of this machine into the volume.
///
/// If the path ends in a symbolic link, the file takes the place that it leads to. It appears whole, or
/// not at all: it gets its name when all of it is there. Holes stay holes.
///
/// Of a directory everything is kept that `undercroft build` keeps: modes, owners, times, extended
/// attributes and access lists, links, devices, holes. Directories that are there keep what is in them.
/// The file of the image, if that is in the directory, is left out.
/// Names that are taken, and a volume that is too small, are found before anything is changed. If the
/// command is interrupted, the volume is sound and holds a part of the tree.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file or directory to copy, or - for standard input; a directory with /. behind it for what
    /// is in it.
    #[arg(value_hint = ValueHint::AnyPath)]
    source: OsString,

    /// Path in the volume, or a directory there to copy into.
    path: OsString,

    #[command(flatten)]
    last: LastLink,

    /// Copy a directory with everything below it.
    #[arg(short, long, conflicts_with_all = ["mode", "preserve", "no_follow"])]
    recursive: bool,

    /// Replace files that exist.
    #[arg(short, long)]
    force: bool,

    /// Permission bits in octal; those of the source if left out, 644 of standard input.
    #[arg(short, long, value_name = "MODE", value_parser = value::mode)]
    mode: Option<u16>,

    /// Owner and group by name or number, as `chown` takes them; a part left out is 0. With -r, of
    /// everything.
    #[arg(long, value_name = "USER:GROUP")]
    owner: Option<NewOwner>,

    /// Keep owner, group, and time of modification.
    #[arg(short, long)]
    preserve: bool,

    /// Print the path, the inode and the size as JSON; with -r, the counts of entries and bytes.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft put root.img motd /etc/motd
  undercroft put -r root.img site /srv            the directory site, in /srv
  undercroft put -r root.img site/. /srv/www      what is in it";

impl Verb for Args {
    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        if self.recursive && Path::new(&self.source).is_dir() {
            return self.put_tree(session, out);
        }
        self.put_file(session, out)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    /// Copies a directory, and with `/.` behind it what is in it.
    fn put_tree(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let path = tree::target(session, &self.path, &self.source)?;
        let spec = SourceSpec::Directory(PathBuf::from(&self.source));
        let opened = undercroft_source::open(&spec, &SourceOptions::default())?;
        // The volume does not go into itself.
        let devices = DeviceReport::of_stack(&**session.volume.device());
        let own = devices.into_iter().map(|device| PathBuf::from(device.name));
        let mut source = WithoutImage::new(opened, &spec, own);
        let owner = self.owner.as_ref();
        let owner =
            owner.map(|_| NewOwner::of_new(owner, session, Owner::default())).transpose()?;
        let options = CopyOptions { force: self.force, owner };
        tree::copy(session, &path, &mut source, options, self.json, out)
    }

    fn put_file(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let stream = self.source == "-";
        let attributes = if stream { None } else { Some(self.attributes()?) };
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
            bail!("{source}: is a directory; use -r to copy it with all that is in it");
        }
        let nanoseconds = u32::try_from(metadata.mtime_nsec()).unwrap_or(0);
        Ok(Attributes {
            mode: (metadata.mode() & 0o7777) as u16,
            owner: Owner { uid: metadata.uid(), gid: metadata.gid() },
            modification: Timestamp { seconds: metadata.mtime(), nanoseconds },
        })
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
