//! A volume as a tar stream in pax format (POSIX.1-2001), with the records of GNU tar and star for
//! extended attributes and sparse files (version 1.0).
//!
//! Everything that [`pack`](crate::pack) reads is kept. ACLs are written as attributes, and as text with
//! numbers: programs read either. Sockets
//! have no form in an archive: they are left out and counted.

mod header;
mod records;

use super::sink::{Contents, Event, Item, Sink, Summary, Warnings};
use super::volume::unpack;
use super::walk::Course;
use super::{Subtree, UnpackError};
use header::{Kind, Member};
use records::{BLOCK, Records};
use std::io::{self, Write};
use std::ops::Range;
use undercroft_xfs::format::{Acl, AclKind, FileType};

/// Writes a volume, or a [part](Subtree) of it, as a tar stream. `report` is called now and then.
///
/// # Errors
/// The volume is damaged, its device failed, or the stream cannot be written.
pub fn to_tar<'v>(
    subtree: impl Into<Subtree<'v>>,
    output: &mut dyn Write,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, UnpackError> {
    let mut sink = TarSink::new(output);
    let summary = unpack(subtree.into(), Course::STORED, &mut sink, report)?;
    sink.finish()?;
    Ok(summary)
}

pub(super) struct TarSink<'w> {
    output: &'w mut dyn Write,
    buffer: Vec<u8>,
}

impl<'w> TarSink<'w> {
    pub(super) fn new(output: &'w mut dyn Write) -> Self {
        Self { output, buffer: Vec::new() }
    }

    /// Writes the end of an archive: two empty blocks.
    pub(super) fn finish(self) -> Result<(), UnpackError> {
        self.output.write_all(&[0; 2 * BLOCK as usize])?;
        Ok(self.output.flush()?)
    }

    /// Writes the headers of a member with `stored` bytes behind them.
    fn begin(
        &mut self,
        item: &Item<'_>,
        kind: Kind,
        target: &[u8],
        stored: u64,
        mut records: Records,
    ) -> Result<(), UnpackError> {
        for (name, value) in item.attributes {
            records.attribute(name, value);
            let list = AclKind::from_xattr_name(name).zip(Acl::from_xattr(value).ok().flatten());
            if let Some((kind, list)) = list {
                records.access_list(kind, &list);
            }
        }
        let end: &[u8] = if kind == Kind::Directory && !item.path.is_empty() { b"/" } else { b"" };
        let path = [b"./", item.path, end].concat();
        let member =
            Member { path: &path, kind, target, stored, core: &item.core, device: device(item) };
        member.write(records, self.output)?;
        Ok(())
    }

    /// Fills the last block of the data stored.
    fn pad(&mut self, stored: u64) -> io::Result<()> {
        let missing = stored.next_multiple_of(BLOCK) - stored;
        // Less than a block.
        self.output.write_all(&[0; BLOCK as usize][..missing as usize])
    }

    /// Writes the data of a file, `expected` bytes.
    fn copy(
        &mut self,
        contents: &mut dyn Contents,
        ranges: &[Range<u64>],
        expected: u64,
    ) -> Result<(), UnpackError> {
        let Self { output, buffer } = self;
        let written =
            contents.copy(ranges, buffer, &mut |_, bytes| Ok(output.write_all(bytes)?))?;
        debug_assert_eq!(written, expected, "the ranges that were announced are delivered");
        Ok(())
    }
}

fn device(item: &Item<'_>) -> Option<(u32, u32)> {
    let is_device = matches!(item.kind, FileType::Character | FileType::Block);
    item.device.filter(|_| is_device).map(|number| (number.major, number.minor))
}

impl Sink for TarSink<'_> {
    fn enter(&mut self, item: &Item<'_>) -> Result<(), UnpackError> {
        self.begin(item, Kind::Directory, b"", 0, Records::default())
    }

    fn leave(&mut self, _: &Item<'_>, _: &mut Warnings) -> Result<(), UnpackError> {
        Ok(())
    }

    fn file(
        &mut self,
        item: &Item<'_>,
        contents: &mut dyn Contents,
        _: &mut Warnings,
    ) -> Result<u64, UnpackError> {
        let size = item.core.size;
        let ranges = &contents.open()?;
        let data = ranges.iter().map(|range| range.end - range.start).sum();
        if data == size {
            self.begin(item, Kind::Regular, b"", size, Records::default())?;
            self.copy(contents, ranges, size)?;
            self.pad(size)?;
            return Ok(size);
        }
        let (records, map) = records::sparse(item.path, size, ranges);
        let stored = map.len() as u64 + data;
        self.begin(item, Kind::Sparse, b"", stored, records)?;
        self.output.write_all(&map)?;
        self.copy(contents, ranges, data)?;
        self.pad(stored)?;
        Ok(data)
    }

    fn symlink(
        &mut self,
        item: &Item<'_>,
        target: &[u8],
        _: &mut Warnings,
    ) -> Result<(), UnpackError> {
        self.begin(item, Kind::Symlink, target, 0, Records::default())
    }

    fn special(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError> {
        let kind = match item.kind {
            FileType::Character => Kind::Character,
            FileType::Block => Kind::Block,
            FileType::Socket => {
                warnings.specials += 1;
                return Ok(());
            }
            _ => Kind::Fifo,
        };
        self.begin(item, kind, b"", 0, Records::default())
    }

    fn link(&mut self, item: &Item<'_>, first: &[u8]) -> Result<(), UnpackError> {
        if item.kind == FileType::Socket {
            return Ok(());
        }
        self.begin(item, Kind::HardLink, &[b"./", first].concat(), 0, Records::default())
    }
}
