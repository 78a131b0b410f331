//! A volume as a directory.
//!
//! Works without root as far as the system lets it: what needs rights that the process lacks is
//! counted. The tree is made from inside: each name is created in the directory that is open at the
//! time, and no symbolic link is ever followed. One directory is open at a time, so depth costs no
//! descriptors; the way up is checked.

mod failed;
mod metadata;
mod working_directory;

use super::sink::{Contents, Event, Item, Sink, Summary, Warnings};
use super::volume::unpack;
use super::walk::Course;
use super::{Subtree, UnpackError};
use failed::failed;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use undercroft_xfs::format::FileType;
use working_directory::WorkingDirectory;

/// Unpacks a volume, or a [part](Subtree) of it, into the directory `destination`, which is made if
/// it does not exist. One that is not empty is refused unless `replace` is set: directories are kept
/// then, other entries of the same names replaced. The metadata of the directory on top goes to
/// `destination`.
/// `report` is called now and then, and for each file that is left out because it is larger than
/// files there may be.
///
/// # Errors
/// The volume is damaged, its device failed, or the destination cannot take it.
pub fn to_directory<'v>(
    subtree: impl Into<Subtree<'v>>,
    destination: &Path,
    replace: bool,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, UnpackError> {
    let mut sink = DirectorySink::open(destination, replace)?;
    unpack(subtree.into(), Course::STORED, &mut sink, report)
}

pub(super) struct DirectorySink {
    place: WorkingDirectory,
    replace: bool,
    buffer: Vec<u8>,
}

impl DirectorySink {
    /// A directory to unpack into, as [`to_directory`] takes it.
    pub(super) fn open(destination: &Path, replace: bool) -> Result<Self, UnpackError> {
        let place = WorkingDirectory::open(destination, replace)?;
        Ok(Self { place, replace, buffer: Vec::new() })
    }

    /// Makes room for a name when that is wanted.
    fn clear(&self, item: &Item<'_>) -> Result<(), UnpackError> {
        if !self.replace {
            return Ok(());
        }
        match rustix::fs::unlinkat(self.place.current(), item.name(), AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("replace", item, error)),
        }
    }

    fn copy(
        &mut self,
        item: &Item<'_>,
        contents: &mut dyn Contents,
        file: &File,
    ) -> Result<u64, UnpackError> {
        let ranges = contents.open()?;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::FileTooLarge => item.too_large(),
            _ => UnpackError::Create { action: "write", path: item.text(), source },
        };
        let bytes = contents.copy(&ranges, &mut self.buffer, &mut |offset, bytes| {
            file.write_all_at(bytes, offset).map_err(failed)
        })?;
        let is_hole_at_end = ranges.last().map_or(0, |range| range.end) < item.core.size;
        if is_hole_at_end {
            file.set_len(item.core.size).map_err(failed)?;
        }
        Ok(bytes)
    }
}

impl Sink for DirectorySink {
    fn enter(&mut self, item: &Item<'_>) -> Result<(), UnpackError> {
        // The destination itself is open already.
        if item.path.is_empty() { Ok(()) } else { self.place.descend(item, self.replace) }
    }

    fn leave(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError> {
        let directory = self.place.ascend(item)?;
        metadata::apply_to_file(&directory, item, warnings)
    }

    fn file(
        &mut self,
        item: &Item<'_>,
        contents: &mut dyn Contents,
        warnings: &mut Warnings,
    ) -> Result<u64, UnpackError> {
        self.clear(item)?;
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(self.place.current(), item.name(), flags, mode)
            .map_err(|error| failed("create", item, error))?;
        let file = File::from(file);
        let copied = self.copy(item, contents, &file);
        if let Err(UnpackError::TooLarge { .. }) = copied {
            rustix::fs::unlinkat(self.place.current(), item.name(), AtFlags::empty())
                .map_err(|error| failed("remove", item, error))?;
        }
        let bytes = copied?;
        metadata::apply_to_file(&file, item, warnings)?;
        Ok(bytes)
    }

    fn symlink(
        &mut self,
        item: &Item<'_>,
        target: &[u8],
        warnings: &mut Warnings,
    ) -> Result<(), UnpackError> {
        self.clear(item)?;
        rustix::fs::symlinkat(target, self.place.current(), item.name())
            .map_err(|error| failed("create", item, error))?;
        metadata::apply_to_name(self.place.current(), item, warnings)
    }

    fn special(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError> {
        use rustix::fs::FileType as Kind;
        self.clear(item)?;
        let kind = match item.kind {
            FileType::Character => Kind::CharacterDevice,
            FileType::Block => Kind::BlockDevice,
            FileType::Socket => Kind::Socket,
            _ => Kind::Fifo,
        };
        let is_device = matches!(kind, Kind::CharacterDevice | Kind::BlockDevice);
        let device = item.device.filter(|_| is_device);
        let device = device.map_or(0, |number| rustix::fs::makedev(number.major, number.minor));
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::mknodat(self.place.current(), item.name(), kind, mode, device) {
            Ok(()) => metadata::apply_to_name(self.place.current(), item, warnings),
            Err(rustix::io::Errno::PERM | rustix::io::Errno::OPNOTSUPP) => {
                warnings.specials += 1;
                Ok(())
            }
            Err(error) => Err(failed("create", item, error)),
        }
    }

    fn link(&mut self, item: &Item<'_>, first: &[u8]) -> Result<(), UnpackError> {
        self.clear(item)?;
        let home = self.place.find(item, first)?;
        let from = home.as_ref().map_or(self.place.current(), std::os::fd::AsFd::as_fd);
        let name = first.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let to = self.place.current();
        match rustix::fs::linkat(from, name, to, item.name(), AtFlags::empty()) {
            // Its target could not be made, which was counted.
            Err(rustix::io::Errno::NOENT) if item.kind.is_special() => Ok(()),
            linked => linked.map_err(|error| failed("link", item, error)),
        }
    }
}
