//! Changes of the metadata of a file.

use crate::{File, FileSystem, Metadata, Nodes};
use undercroft_xfs::format::{InodeFlags, Timestamp};
use undercroft_xfs::ops::{self, MetadataChange, SizeHints};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile};

/// What a time becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The time of the change.
    Now,
    /// This, or the nearest time that the volume can hold.
    To(Timestamp),
}

/// Changes of a file; `None` leaves a field as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Permission bits, with setuid, setgid and sticky. An access list follows.
    pub mode: Option<u16>,
    /// Owner. A file whose owner or group is set loses setuid, setgid if its group may execute it,
    /// and its capabilities, unless `mode` says otherwise.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size of a regular file in bytes. One that the file has already changes no times.
    pub size: Option<u64>,
    /// Last access.
    pub accessed: Option<SetTime>,
    /// Last change of the content.
    pub modified: Option<SetTime>,
    /// Last change of the inode. Without this it is the time of this change, and with it so are the
    /// times that are `Now`: for callers that count time themselves. They may tell late: flags that
    /// forbid changes forbid none that was made before the inode was changed last.
    pub changed: Option<Timestamp>,
    /// Birth.
    pub created: Option<SetTime>,
    /// Project.
    pub project: Option<u32>,
    /// All flags of [`Change::FLAGS`]; the others are the file system's own.
    pub flags: Option<InodeFlags>,
    /// The flag that asks for direct access to persistent memory (DAX): kept for kernels.
    pub direct_access: Option<bool>,
    /// New space of the file is taken in multiples of this, in bytes; 0 takes the hint away.
    pub extent_size: Option<u64>,
    /// Shared blocks are copied in multiples of this before one changes, in bytes.
    pub copy_extent_size: Option<u64>,
}

impl Change {
    /// Flags that can be set.
    pub const FLAGS: InodeFlags = MetadataChange::FLAGS;

    /// Flags of these that only directories have.
    pub const DIRECTORY_FLAGS: InodeFlags = MetadataChange::DIRECTORY_FLAGS;

    fn metadata(&self, now: Timestamp) -> MetadataChange {
        let time = |set: Option<SetTime>| {
            set.map(|set| match set {
                SetTime::Now => now,
                SetTime::To(time) => time,
            })
        };
        MetadataChange {
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            access: time(self.accessed),
            modification: time(self.modified),
            creation: time(self.created),
            project: self.project,
            flags: self.flags,
            direct_access: self.direct_access,
            is_counted: self.changed.is_some(),
        }
    }

    fn hints(&self) -> SizeHints {
        SizeHints { extent: self.extent_size, copy: self.copy_extent_size }
    }
}

impl Nodes<'_> {
    /// Changes the metadata of a file, and returns the result. Size, hints and the rest are a step
    /// each, in this order; after a failure the later steps are not done.
    ///
    /// # Errors
    /// No file has the number; a value that the file cannot have; its flags forbid it; no space; a
    /// damaged structure; the device failed; the volume is read-only.
    pub fn set_attributes(&self, number: InodeNumber, change: &Change) -> Result<Metadata, Error> {
        if change.size.is_some() {
            return self.open(number)?.set_attributes(change);
        }
        let inode = self.fs.inode(number)?;
        self.fs.change(number, None, change)?;
        Ok(self.fs.metadata_of(&inode))
    }
}

impl FileSystem {
    fn change(
        &self,
        number: InodeNumber,
        file: Option<&OpenFile>,
        change: &Change,
    ) -> Result<(), Error> {
        let (volume, now) = (self.volume(), change.changed.unwrap_or_else(|| self.now()));
        if let Some((file, size)) = file.zip(change.size) {
            file.inode().read().expect_mutable(true)?;
            file.truncate(size, (size != file.size()).then_some(now))?;
        }
        let hints = change.hints();
        if hints != SizeHints::default() {
            ops::set_size_hints(volume, number, &hints, now)?;
        }
        let metadata = change.metadata(now);
        if metadata != MetadataChange::default() {
            ops::change_metadata(volume, number, &metadata, now)?;
        }
        Ok(())
    }
}

impl File {
    /// As [`Nodes::set_attributes`], of this file.
    ///
    /// # Errors
    /// As there.
    pub fn set_attributes(&self, change: &Change) -> Result<Metadata, Error> {
        self.file_system().change(self.number(), Some(self.open_file()), change)?;
        Ok(self.metadata())
    }
}
