//! A volume as a tar stream in pax format (POSIX.1-2001), with the records of GNU tar and star for
//! extended attributes and sparse files (version 1.0).
//!
//! Everything that [`pack`](crate::pack) reads is kept. ACLs are written as attributes. Sockets have
//! no form in an archive: they are left out and counted.

mod header;
mod records;

use super::UnpackError;
use super::sink::{Item, Progress, Sink, Summary, Warnings, unpack};
use header::{Kind, Member};
use records::Records;
use std::io::{self, Write};
use undercroft_xfs::Volume;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::ForkContent;
use undercroft_xfs::ops::{self, Piece};

/// Bytes of a tar block.
const BLOCK: u64 = 512;

/// Writes the whole volume as a tar stream. `report` is called now and then.
///
/// # Errors
/// The volume is damaged, its device failed, or the stream cannot be written.
pub fn to_tar(
    volume: &Volume,
    output: &mut dyn Write,
    report: &mut dyn FnMut(&Progress),
) -> Result<Summary, UnpackError> {
    let mut sink = TarSink { output };
    let summary = unpack(volume, &mut sink, report)?;
    // The end of an archive: two empty blocks.
    sink.output.write_all(&[0; 2 * BLOCK as usize])?;
    sink.output.flush()?;
    Ok(summary)
}

struct TarSink<'w> {
    output: &'w mut dyn Write,
}

impl TarSink<'_> {
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
        }
        let end: &[u8] = if kind == Kind::Directory && !item.path.is_empty() { b"/" } else { b"" };
        let path = [b"./", item.path, end].concat();
        let member = Member {
            path: &path,
            kind,
            target,
            stored,
            core: &item.inode.core,
            device: device(item),
        };
        member.write(records, self.output)?;
        Ok(())
    }

    /// Fills the last block of what was stored.
    fn pad(&mut self, stored: u64) -> io::Result<()> {
        let missing = stored.next_multiple_of(BLOCK) - stored;
        // Less than a block.
        self.output.write_all(&[0; BLOCK as usize][..missing as usize])
    }

    /// Writes the data of a file, `expected` bytes.
    fn copy(&mut self, item: &Item<'_>, expected: u64) -> Result<(), UnpackError> {
        let mut reader = item.reader()?;
        let mut written = 0;
        while let Some(piece) = reader.next_piece().map_err(|error| item.damaged(error))? {
            if let Piece::Data { buffer, len, .. } = piece {
                self.output.write_all(&buffer[..len])?;
                written += len as u64;
            }
        }
        debug_assert_eq!(written, expected, "the reader delivers the ranges that were announced");
        Ok(())
    }
}

fn device(item: &Item<'_>) -> Option<(u32, u32)> {
    match (item.inode.file_type(), &item.inode.data.content) {
        (FileType::Character | FileType::Block, ForkContent::Device(number)) => {
            Some((number.major, number.minor))
        }
        _ => None,
    }
}

impl Sink for TarSink<'_> {
    fn enter(&mut self, item: &Item<'_>) -> Result<(), UnpackError> {
        self.begin(item, Kind::Directory, b"", 0, Records::default())
    }

    fn leave(&mut self, _: &Item<'_>, _: &mut Warnings) -> Result<(), UnpackError> {
        Ok(())
    }

    fn file(&mut self, item: &Item<'_>, _: &mut Warnings) -> Result<u64, UnpackError> {
        let size = item.inode.core.size;
        // Refuses what cannot be read before anything is written about it.
        item.reader()?;
        let ranges =
            ops::data_ranges(item.volume, item.inode).map_err(|error| item.damaged(error))?;
        let data = ranges.iter().map(|range| range.end - range.start).sum();
        if data == size {
            self.begin(item, Kind::Regular, b"", size, Records::default())?;
            self.copy(item, size)?;
            self.pad(size)?;
            return Ok(size);
        }
        let (records, map) = records::sparse(item.path, size, &ranges);
        let stored = map.len() as u64 + data;
        self.begin(item, Kind::Sparse, b"", stored, records)?;
        self.output.write_all(&map)?;
        self.copy(item, data)?;
        self.pad(stored)?;
        Ok(data)
    }

    fn symlink(&mut self, item: &Item<'_>, _: &mut Warnings) -> Result<(), UnpackError> {
        self.begin(item, Kind::Symlink, &item.target()?, 0, Records::default())
    }

    fn special(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError> {
        let kind = match item.inode.file_type() {
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
        if item.inode.file_type() == FileType::Socket {
            return Ok(());
        }
        self.begin(item, Kind::HardLink, &[b"./", first].concat(), 0, Records::default())
    }
}
