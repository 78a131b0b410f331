//! Why an image could not be built.

use crate::diff::DiffError;
use crate::disk::DiskError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use undercroft_block::stack::{Description, NoRoom, StackError};
use undercroft_block::{BlockError, OpenError};
use undercroft_source::SourceError;
use undercroft_xfs::Error as VolumeError;
use undercroft_xfs::mkfs::MkfsError;

/// Why an image could not be built. The target is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PackError {
    /// The source cannot be read, or holds what cannot be packed.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// The options of the volume do not go together.
    #[error(transparent)]
    Options(#[from] MkfsError),

    /// An entry cannot be stored.
    #[error("cannot store {path}")]
    Entry {
        /// Its path, escaped.
        path: String,
        /// Why not.
        source: VolumeError,
    },

    /// The volume is too small for the source.
    #[error("the volume of {size} bytes is full at {path}{}", size_needed(*needed))]
    TooSmall {
        /// Length of the volume.
        size: u64,
        /// Where it became full.
        path: String,
        /// A length in bytes that is enough, unless the source cannot be read again to find it.
        needed: Option<u64>,
    },

    /// The source has more inodes than the share of the volume that was set for them.
    #[error("{inodes} inodes take more than {allowed} % of the volume, the limit that was set; a larger volume holds them{}", size_needed(*needed))]
    Inodes {
        /// The limit in percent.
        allowed: u8,
        /// Inodes there would be, whole chunks of them.
        inodes: u64,
        /// A length in bytes that is enough, unless the source cannot be read again to find it.
        needed: Option<u64>,
    },

    /// No volume has so much free.
    #[error("no volume leaves that much free; ask for less than 100 %, or for fewer bytes")]
    FreeTooLarge,

    /// A device is too short to leave so much free.
    #[error(
        "the device would have {left} bytes free, {wanted} were asked for; ask for less, or use a larger device"
    )]
    LittleFree {
        /// Bytes that should be free.
        wanted: u64,
        /// Bytes that would be.
        left: u64,
    },

    /// The file system that holds the image is full.
    #[error(
        "no space left for the image on the file system of {image}; make room there or choose another place"
    )]
    HostFull {
        /// The image.
        image: String,
    },

    /// Something else went wrong with the volume.
    #[error("cannot build the volume")]
    Volume(#[source] VolumeError),

    /// The target is a file that exists, and was not to be replaced.
    #[error("{} exists", .0.display())]
    Exists(PathBuf),

    /// The target is a device that holds something, and was not to be overwritten.
    #[error("{} holds {what}", image.display())]
    Holds {
        /// The device.
        image: PathBuf,
        /// What would be lost.
        what: String,
    },

    /// The target is a link to nothing.
    #[error("{} is a symbolic link to {}, which does not exist; remove the link, or name the file itself", link.display(), to.display())]
    DanglingLink {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },

    /// The target is neither a file nor a block device.
    #[error("{} is {what}; the image must be a regular file or a block device", image.display())]
    WrongTarget {
        /// The image.
        image: PathBuf,
        /// The kind of the target.
        what: &'static str,
    },

    /// A block device, or a file whose length is given, is too short for its content.
    #[error(
        "{image} has {available} bytes, the volume needs {needed}; use a smaller size or another device"
    )]
    DeviceTooSmall {
        /// The device, or the part of the image.
        image: String,
        /// Its length.
        available: u64,
        /// Length that it should have.
        needed: u64,
    },

    /// The blocks of a device are longer than those of the volume.
    #[error(
        "{image} has blocks of {device} bytes, and a volume with blocks of {block} bytes cannot be there"
    )]
    ShortBlocks {
        /// The device.
        image: String,
        /// Bytes of one of its blocks.
        device: u64,
        /// Bytes of a block of the volume.
        block: u32,
    },

    /// Nothing says how large the volume is.
    #[error("{0} will be a new file, which needs a size")]
    SizeNeeded(String),

    /// A leg of a mirror failed, so the image would not be on all legs.
    #[error("{0}")]
    LegDropped(String),

    /// The files cannot be stacked.
    #[error(transparent)]
    Stack(#[from] StackError),

    /// The image cannot be written.
    #[error("cannot {action} {}", image.display())]
    Target {
        /// The action that failed.
        action: &'static str,
        /// The image.
        image: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// The image cannot be used as a device.
    #[error(transparent)]
    Device(#[from] OpenError),

    /// Blocks had to be shared, and nothing could have them shared.
    #[error("no blocks can be shared: {0}")]
    NothingToShare(&'static str),

    /// Blocks had to be shared, and the file system cannot.
    #[error(
        "{path}: its blocks cannot be shared with the image; both must be on one file system that \
         shares blocks (XFS with reflink, btrfs), whose blocks are not larger than those of the volume"
    )]
    NotShared {
        /// The entry, escaped.
        path: String,
        /// What the device answered.
        source: BlockError,
    },

    /// The volume does not hold what the source does.
    #[error(
        "the volume differs from the source at {path}: {what} ({count} paths differ), so there is no \
         image; if the source was changed meanwhile, build again while it is left alone"
    )]
    Verify {
        /// The first path that differs, escaped.
        path: String,
        /// How it differs.
        what: &'static str,
        /// Paths that differ.
        count: u64,
    },

    /// The volume cannot be compared with the source.
    #[error("the volume cannot be read back to be compared with the source")]
    VerifyRead(#[source] DiffError),

    /// The source can be read only once.
    #[error(
        "a stream cannot be read a second time, to compare the volume with it; save it in a file"
    )]
    VerifyStream,

    /// The disk around the volume cannot be made.
    #[error(transparent)]
    Disk(#[from] DiskError),

    /// Only one new file can have another format than raw.
    #[error("{0} is not one regular file, which a qcow2 image must be")]
    FormatOfTarget(String),
}

impl From<NoRoom> for PackError {
    fn from(error: NoRoom) -> Self {
        let NoRoom { what: image, available, needed } = error;
        Self::DeviceTooSmall { image, available, needed }
    }
}

/// Whether a failed write found the disk full.
fn is_host_full(error: &VolumeError) -> bool {
    matches!(error, VolumeError::Device(error) if BlockError::is_no_space(error))
}

fn size_needed(needed: Option<u64>) -> String {
    needed.map_or_else(String::new, |bytes| format!("; the source needs {bytes} bytes"))
}

impl PackError {
    /// An error that no entry is to blame for.
    pub(super) fn volume(error: VolumeError) -> Self {
        Self::Volume(error)
    }

    /// Whether the volume, not the file system that holds it, was full.
    pub(super) fn is_full(&self) -> bool {
        matches!(
            self,
            Self::Entry { source: VolumeError::NoSpace { .. }, .. }
                | Self::Volume(VolumeError::NoSpace { .. })
                | Self::Inodes { .. }
        )
    }

    /// Completes errors of space in a volume of `size` bytes. `needed` finds a size that is enough.
    pub(super) fn with_size(
        self,
        size: u64,
        image: &Description,
        needed: impl FnOnce() -> Option<u64>,
    ) -> Self {
        match self {
            Self::Entry { source, .. } | Self::Volume(source) if is_host_full(&source) => {
                Self::HostFull { image: image.to_string() }
            }
            Self::Disk(DiskError::Device(error)) if error.is_no_space() => {
                Self::HostFull { image: image.to_string() }
            }
            Self::Entry { path, source: VolumeError::NoSpace { .. } } => {
                Self::too_small(size, path, needed())
            }
            Self::Volume(VolumeError::NoSpace { .. }) => {
                Self::too_small(size, "the root directory".into(), needed())
            }
            Self::Inodes { allowed, inodes, .. } => {
                Self::Inodes { allowed, inodes, needed: needed() }
            }
            other => other,
        }
    }

    fn too_small(size: u64, path: String, needed: Option<u64>) -> Self {
        Self::TooSmall { size, path, needed }
    }
}
