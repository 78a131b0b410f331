//! How to build an image.

use crate::disk::DiskOptions;
use undercroft_block::stack::Description;
use undercroft_source::{Metadata, SourceOptions, SourceSpec, Timestamp};
use undercroft_xfs::mkfs::MkfsOptions;
use uuid::Uuid;

/// How large an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeChoice {
    /// This many bytes.
    Exact(u64),
    /// What the content needs, and a tenth of it free, at least 16 MiB. A block device: all of it.
    Auto,
    /// As little as the content needs.
    Minimum,
    /// What the content needs, and this much free for more. A block device: all of it, if that
    /// leaves so much free.
    Free(Free),
}

/// Space that a build leaves free for files, as `df` shows it: beyond what the volume's trees may take
/// and what a kernel keeps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// So many bytes.
    Bytes(u64),
    /// This share of the volume, below 100.
    Percent(u8),
}

impl Free {
    /// Bytes of a volume of `size` bytes.
    #[must_use]
    pub fn of(self, size: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            // A hundredth of 2^64, 99 times, fits.
            Self::Percent(percent) => size.div_ceil(100) * u64::from(percent.min(99)),
        }
    }
}

/// How the file of an image holds its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageFormat {
    /// As they are.
    #[default]
    Raw,
    /// As QEMU's qcow2, version 3, without what is zeros.
    Qcow2,
}

/// Whether the image shares blocks with the files that it is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reflink {
    /// Where the file system that holds both can.
    #[default]
    Auto,
    /// All data of large files, or the build fails.
    Always,
    /// Nothing.
    Never,
}

/// How to build an image.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// What to pack.
    pub source: SourceSpec,
    /// How to read it.
    pub source_options: SourceOptions,
    /// The image: files to be made, or block devices. The volume is the same on any of them.
    pub image: Description,
    /// How the file of the image holds its bytes; block devices and files that are stacked are raw.
    pub format: ImageFormat,
    /// Make a disk with partitions, one of which holds the volume; without it the image is the volume.
    pub disk: Option<DiskOptions>,
    /// Replace a file that exists, or overwrite what is on a device.
    pub force: bool,
    /// Share the blocks of files of 64 KiB and more instead of copying them.
    pub reflink: Reflink,
    /// Read the volume back and compare it with the source, before it appears.
    pub verify: bool,
    /// Return only when the image is on stable storage.
    pub durable: bool,
    /// How large the volume is.
    pub size: SizeChoice,
    /// Geometry and features; size and identity in it are ignored.
    pub volume: MkfsOptions,
    /// Take the preset that the newest kernel in the source mounts, if there is a kernel.
    pub preset_of_kernel: bool,
    /// Identity of the volume; without one it is derived from options and entries (not from file
    /// contents), so that the same input gives the same image.
    pub uuid: Option<Uuid>,
    /// Latest modification time of anything, and the time at which every inode says it was made
    /// and changed (SOURCE_DATE_EPOCH). Without it those are the modification time.
    pub epoch: Option<i64>,
}

impl PackOptions {
    /// Defaults for packing `source` into `image`.
    #[must_use]
    pub fn new(source: SourceSpec, image: impl Into<Description>) -> Self {
        Self {
            source,
            source_options: SourceOptions::default(),
            image: image.into(),
            format: ImageFormat::Raw,
            disk: None,
            force: false,
            reflink: Reflink::Auto,
            verify: false,
            durable: false,
            size: SizeChoice::Auto,
            volume: MkfsOptions::new(0, Uuid::nil()),
            preset_of_kernel: false,
            uuid: None,
            epoch: None,
        }
    }

    /// Metadata of an entry as it will be.
    pub(super) fn limited(&self, metadata: &Metadata) -> Metadata {
        let own = metadata.mtime;
        let mtime =
            self.epoch.map_or(own, |seconds| own.min(Timestamp { seconds, nanoseconds: 0 }));
        Metadata { mtime, ..*metadata }
    }
}
