//! What must hold inside one inode (docs/format/inodes.md, docs/format/checks.md#inodes).

use crate::geometry::Geometry;
use crate::units::InodeNumber;
use crate::{FileType, ForkFormat, InodeCore, InodeFlags, InodeFlags2};

/// Bytes of one extent record in an inode.
const EXTENT_RECORD: usize = 16;

/// Longest extent of a mapping in blocks, and so the largest hint.
const EXTENT_MAX: u32 = (1 << 21) - 1;

/// Bytes a directory may span: three ranges of 32 GiB.
const DIRECTORY_MAX: u64 = 3 << 35;

/// Returns the formatted message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

impl InodeCore {
    /// Checks everything that can be seen in the core of inode `number` alone.
    ///
    /// # Errors
    ///
    /// A message that names the field, its value and the rule.
    pub fn verify(&self, number: InodeNumber, geometry: &Geometry) -> Result<(), String> {
        if geometry.features.crc {
            ensure!(self.number == number, "own number is {}, not {number}", self.number);
            ensure!(self.uuid == geometry.meta_uuid, "uuid {} is of another volume", self.uuid);
        }
        let (ag, _) = geometry.split_inode(number);
        ensure!(
            self.next_unlinked.is_null()
                || geometry.valid_inode(geometry.inode_number(ag, self.next_unlinked)),
            "next unlinked inode {} cannot exist",
            self.next_unlinked
        );
        ensure!(self.size >> 63 == 0, "size {:#x} is negative", self.size);
        self.verify_flags(geometry)?;
        if self.mode == 0 {
            return self.verify_fork_offset(geometry);
        }
        let Some(kind) = self.file_type() else {
            return Err(format!("mode {:#o} names no file type", self.mode));
        };
        ensure!(
            self.size > 0
                || self.nlink == 0
                || !matches!(kind, FileType::Directory | FileType::Symlink),
            "{kind:?} of size 0"
        );
        self.verify_counts(kind, geometry)?;
        self.verify_fork_offset(geometry)?;
        self.verify_data_fork(kind, geometry)?;
        self.verify_attr_fork(geometry)?;
        self.verify_hints(kind, geometry)
    }

    /// Flag bits against the format and the volume's features.
    fn verify_flags(&self, geometry: &Geometry) -> Result<(), String> {
        let unknown = self.flags.bits() & !InodeFlags::all().bits();
        ensure!(unknown == 0, "unknown flags {unknown:#x}");
        let unknown = self.flags2.bits() & !InodeFlags2::all().bits();
        ensure!(unknown == 0, "unknown flags2 {unknown:#x}");
        let features = &geometry.features;
        for (flag, allowed) in [
            (InodeFlags2::BIGTIME, features.bigtime()),
            (InodeFlags2::NREXT64, features.nrext64()),
            (InodeFlags2::METADATA, features.metadir()),
            (InodeFlags2::REFLINK, features.reflink()),
            (InodeFlags2::COWEXTSIZE, features.reflink()),
        ] {
            ensure!(
                allowed || !self.flags2.contains(flag),
                "flag {flag:?} without the feature of the volume"
            );
        }
        ensure!(
            self.metatype == 0 || self.flags2.contains(InodeFlags2::METADATA),
            "metadata type {} in an ordinary inode",
            self.metatype
        );
        Ok(())
    }

    fn verify_fork_offset(&self, geometry: &Geometry) -> Result<(), String> {
        let forkoff = usize::from(self.forkoff);
        ensure!(
            forkoff * 8 < geometry.literal_size(),
            "attribute fork offset {forkoff} is outside the inode"
        );
        ensure!(
            forkoff <= 1 || self.data_format != ForkFormat::Dev,
            "attribute fork offset {forkoff} of a device"
        );
        Ok(())
    }

    /// Extent counters against each other, the block count and the limits of their fields.
    fn verify_counts(&self, kind: FileType, geometry: &Geometry) -> Result<(), String> {
        let (data, attr) = (self.data_extents, u64::from(self.attr_extents));
        let wide = self.flags2.contains(InodeFlags2::NREXT64);
        let (data_max, attr_max) =
            if wide { ((1 << 48) - 1, (1 << 32) - 1) } else { ((1 << 31) - 1, (1 << 15) - 1) };
        ensure!(data <= data_max, "{data} data extents, at most {data_max} are possible");
        ensure!(attr <= attr_max, "{attr} attribute extents, at most {attr_max} are possible");
        ensure!(data + attr <= self.nblocks, "{data} + {attr} extents in {} blocks", self.nblocks);
        ensure!(
            data + attr > 0 || self.nblocks == 0 || self.data_format == ForkFormat::MetaBtree,
            "{} blocks without extents",
            self.nblocks
        );
        let directory_max = DIRECTORY_MAX >> geometry.block_log;
        ensure!(
            kind != FileType::Directory || data <= directory_max,
            "{data} extents, a directory has at most {directory_max}"
        );
        Ok(())
    }

    fn verify_data_fork(&self, kind: FileType, geometry: &Geometry) -> Result<(), String> {
        let (format, extents) = (self.data_format, self.data_extents);
        let room = self.data_fork(geometry).len();
        let legal = match kind {
            kind if kind.is_special() => format == ForkFormat::Dev,
            FileType::Directory => {
                matches!(format, ForkFormat::Local | ForkFormat::Extents | ForkFormat::Btree)
            }
            FileType::Symlink => matches!(format, ForkFormat::Local | ForkFormat::Extents),
            _ => match format {
                ForkFormat::Extents | ForkFormat::Btree => true,
                ForkFormat::MetaBtree => self.flags2.contains(InodeFlags2::METADATA),
                _ => false,
            },
        };
        ensure!(legal, "data fork format {format:?} of a {kind:?}");
        match format {
            ForkFormat::Dev => {
                ensure!(self.size == 0, "size {} of a {kind:?}", self.size);
                ensure!(extents == 0, "{extents} extents of a {kind:?}");
            }
            ForkFormat::Local => ensure!(
                self.size <= room as u64 && extents == 0,
                "local data of {} bytes and {extents} extents in a fork of {room} bytes",
                self.size
            ),
            ForkFormat::Extents | ForkFormat::Btree => {
                verify_extents("data", format, extents, room)?;
            }
            ForkFormat::Uuid | ForkFormat::MetaBtree => {}
        }
        ensure!(
            kind != FileType::Directory
                || self.nlink == 0
                || format == ForkFormat::Local
                || self.size > room as u64,
            "a directory of {} bytes fits the inode but is not in it",
            self.size
        );
        Ok(())
    }

    fn verify_attr_fork(&self, geometry: &Geometry) -> Result<(), String> {
        let (format, extents) = (self.attr_format, u64::from(self.attr_extents));
        if self.forkoff == 0 {
            // Older volumes have inodes whose unused format is 0.
            ensure!(
                matches!(format, ForkFormat::Extents | ForkFormat::Dev) && extents == 0,
                "attribute format {format:?} with {extents} extents, but no attribute fork"
            );
            return Ok(());
        }
        match format {
            ForkFormat::Local => {
                ensure!(extents == 0, "{extents} extents of local attributes");
                Ok(())
            }
            ForkFormat::Extents | ForkFormat::Btree => {
                verify_extents("attribute", format, extents, self.attr_fork(geometry).len())
            }
            ForkFormat::Dev | ForkFormat::Uuid | ForkFormat::MetaBtree => {
                Err(format!("attribute fork format {format:?}"))
            }
        }
    }

    /// Extent size hints: flags, file type and value belong together.
    fn verify_hints(&self, kind: FileType, geometry: &Geometry) -> Result<(), String> {
        let (regular, directory) = (kind == FileType::Regular, kind == FileType::Directory);
        let realtime = self.flags.contains(InodeFlags::REALTIME);
        let (own, inherit) = (
            self.flags.contains(InodeFlags::EXTSIZE),
            self.flags.contains(InodeFlags::EXTSZINHERIT),
        );
        let cow = self.flags2.contains(InodeFlags2::COWEXTSIZE);
        let metadata = self.flags2.contains(InodeFlags2::METADATA);
        ensure!(!own || regular, "extent size flag of a {kind:?}");
        ensure!(!inherit || directory, "inherited extent size flag of a {kind:?}");
        ensure!(!cow || regular || directory, "copy-on-write hint flag of a {kind:?}");
        ensure!(
            !self.flags2.contains(InodeFlags2::REFLINK) || regular,
            "shared blocks flag of a {kind:?}"
        );
        // The limit of the realtime device (its extent size) is not the data device's.
        let limit = if realtime { EXTENT_MAX } else { EXTENT_MAX.min(geometry.ag_blocks / 2) };
        for (name, flag, value) in
            [("extent", own || inherit, self.extsize), ("copy-on-write", cow, self.cowextsize)]
        {
            // Realtime trees of the metadata directory keep a block count in this field.
            if metadata && name == "copy-on-write" {
                continue;
            }
            ensure!(flag == (value != 0), "{name} size hint {value}, but its flag is {flag}");
            ensure!(value <= limit, "{name} size hint {value} is above {limit}");
        }
        Ok(())
    }
}

/// The extent count of a mapped fork against the room it has in the inode.
fn verify_extents(fork: &str, format: ForkFormat, extents: u64, room: usize) -> Result<(), String> {
    let inline = (room / EXTENT_RECORD) as u64;
    ensure!(
        (format == ForkFormat::Btree) == (extents > inline),
        "{extents} {fork} extents in format {format:?}; {inline} fit the inode"
    );
    Ok(())
}
