//! The place of files that have no name left.

use std::sync::Arc;

use undercroft_xfs::Volume;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::InodeNumber;

use crate::error::RepairError;

/// Its name in the root directory.
const NAME: &[u8] = b"lost+found";

/// `lost+found`, made when it is needed.
#[derive(Debug, Default)]
pub(super) struct LostFound {
    directory: Option<InodeNumber>,
    made: Option<InodeNumber>,
}

impl LostFound {
    /// Where an inode goes, and its name there.
    pub(super) fn place(
        &mut self,
        root: InodeNumber,
        volume: &Arc<Volume>,
        number: InodeNumber,
    ) -> Result<(InodeNumber, Vec<u8>), RepairError> {
        let directory = match self.directory {
            Some(directory) => directory,
            None => self.open(root, volume)?,
        };
        self.directory = Some(directory);
        Ok((directory, number.0.to_string().into_bytes()))
    }

    /// The directory, if it was just made.
    pub(super) fn take_made(&mut self) -> Option<InodeNumber> {
        self.made.take()
    }

    fn open(
        &mut self,
        root: InodeNumber,
        volume: &Arc<Volume>,
    ) -> Result<InodeNumber, RepairError> {
        for suffix in 0_u32.. {
            let name = match suffix {
                0 => NAME.to_vec(),
                _ => format!("lost+found.{suffix}").into_bytes(),
            };
            let inode = volume.inode(root)?;
            let found = ops::lookup(volume, &inode.read(), &name)?;
            let Some(found) = found else {
                let made =
                    ops::make(volume, root, &name, &NewInode::new(FileType::Directory, 0o700))?;
                self.made = Some(made);
                return Ok(made);
            };
            let is_directory =
                volume.inode(found).is_ok_and(|it| it.read().file_type() == FileType::Directory);
            if is_directory {
                return Ok(found);
            }
        }
        Ok(root)
    }
}
