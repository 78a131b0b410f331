//! Flags and size hints of files.

use super::{Caller, Server};
use crate::failure::Failure;
use crate::ioctl::{self, FileFlags};
use rustix::io::Errno;
use undercroft_fs::{Change, InodeFlags, InodeNumber, Metadata};

impl Server {
    /// Whether an `ioctl` sets what decides about the data of a file.
    pub(crate) fn is_control_of_data(command: u32) -> bool {
        matches!(command, ioctl::SET_FLAGS | ioctl::SET_XATTR)
    }

    /// Refuses an opening that the flags of the file forbid.
    pub(crate) fn expect_openable(
        &self,
        number: InodeNumber,
        writes: bool,
        appends: bool,
    ) -> Result<(), Failure> {
        self.nodes.expect(number)?;
        if !writes {
            return Ok(());
        }
        let flags = self.fs.nodes().stat(number)?.flags;
        let is_forbidden =
            flags.contains(InodeFlags::IMMUTABLE) || flags.contains(InodeFlags::APPEND) && !appends;
        if is_forbidden { Err(Errno::PERM.into()) } else { Ok(()) }
    }

    /// Gives free space back, as FITRIM asks for it.
    pub(crate) fn trim(&self, bytes: &[u8], caller: Caller) -> Result<Vec<u8>, Failure> {
        let is_owner = caller.uid == 0 || caller.uid == rustix::process::geteuid().as_raw();
        if !is_owner {
            return Err(Errno::PERM.into());
        }
        if !self.fs.is_writable() || self.is_at_rest() {
            return Err(Errno::ROFS.into());
        }
        let [start, len, minimum] = ioctl::decode_trim(bytes).ok_or(Errno::INVAL)?;
        let range = start..start.saturating_add(len);
        let done = self.fs.volume().discard_free(range, minimum, &mut |_| {})?.bytes;
        Ok([start, done, minimum].map(u64::to_ne_bytes).concat())
    }

    /// Answers an `ioctl` with `bytes`, and gives it to `reply`.
    pub(crate) fn control(
        &self,
        number: InodeNumber,
        command: u32,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        self.nodes.expect(number)?;
        let metadata = self.fs.nodes().stat(number)?;
        match command {
            ioctl::GET_FLAGS => {
                let word = ioctl::word_of(metadata.flags, metadata.direct_access);
                Ok(word.to_ne_bytes().to_vec())
            }
            ioctl::SET_FLAGS => {
                let word = ioctl::decode_word(bytes).ok_or(Errno::INVAL)?;
                let set = ioctl::flags_of(word, metadata.flags).ok_or(Errno::OPNOTSUPP)?;
                let flags = Some(settable(&metadata, set.0 & Change::FLAGS));
                let direct_access = (set.1 != metadata.direct_access).then_some(set.1);
                self.set_flags(number, &Change { flags, direct_access, ..Change::default() })
            }
            ioctl::GET_XATTR => {
                let extents = if metadata.is_file() {
                    self.fs.nodes().open(number)?.extent_map()?.len()
                } else {
                    0
                };
                let extents = u32::try_from(extents).unwrap_or(u32::MAX);
                Ok(FileFlags::of(&metadata, extents).encode().to_vec())
            }
            ioctl::SET_XATTR => {
                let wanted = FileFlags::decode(bytes).ok_or(Errno::INVAL)?;
                if wanted.wants_realtime() {
                    return Err(Errno::INVAL.into());
                }
                let direct_access = wanted.wants_direct_access();
                let changed = |new: u64, old: u64| (new != old).then_some(new);
                let extent = changed(wanted.wanted_extent_size(), metadata.extent_size);
                let copy = changed(wanted.wanted_copy_extent_size(), metadata.copy_extent_size);
                self.set_flags(
                    number,
                    &Change {
                        flags: Some(settable(&metadata, wanted.inode_flags())),
                        direct_access: (direct_access != metadata.direct_access)
                            .then_some(direct_access),
                        project: (wanted.project != metadata.project).then_some(wanted.project),
                        extent_size: extent,
                        copy_extent_size: copy,
                        ..Change::default()
                    },
                )
            }
            _ => Err(Errno::NOTTY.into()),
        }
    }

    fn set_flags(&self, number: InodeNumber, change: &Change) -> Result<Vec<u8>, Failure> {
        let metadata = self.fs.nodes().set_attributes(number, change)?;
        self.tell_of_change(number);
        self.tell_of_times(&metadata);
        Ok(Vec::new())
    }
}

/// The flags that a file of this kind keeps: those of directories alone are left out elsewhere, without
/// an error, as the kernel does it.
fn settable(metadata: &Metadata, flags: InodeFlags) -> InodeFlags {
    if metadata.is_dir() { flags } else { flags - Change::DIRECTORY_FLAGS }
}
