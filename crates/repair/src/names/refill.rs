//! Contents that were taken out of damaged structures, put into new ones.

use undercroft_xfs::Volume;
use undercroft_xfs::format::{EntryType, name_defect};
use undercroft_xfs::ops::mend;
use undercroft_xfs::units::InodeNumber;

use crate::action::{Action, Place};
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::inode::contents::Refill;
use crate::subject::Subject;

pub(super) fn fill(
    subject: &Subject,
    volume: &Volume,
    chunks: &Chunks,
    refills: &[(InodeNumber, Refill)],
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    for (number, refill) in refills {
        for entry in refill.entries.iter().flatten() {
            let is_usable = name_defect(&entry.name).is_none()
                && chunks.in_use(&subject.geometry, entry.inode)
                && entry.inode != *number;
            if !is_usable {
                continue;
            }
            let kind = kind_of(volume, entry.inode).unwrap_or(entry.kind);
            match mend::add_entry(volume, *number, &entry.name, entry.inode, kind) {
                Ok(()) => {}
                // The first of two entries of one name stays.
                Err(undercroft_xfs::Error::Exists(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for attribute in refill.attributes.iter().flatten() {
            if let Err(error) = mend::restore_attribute(volume, *number, attribute) {
                actions.push(Action {
                    place: Place::Inode(*number),
                    what: format!(
                        "the attribute {} cannot be stored again: {error}",
                        String::from_utf8_lossy(&attribute.name)
                    ),
                    loss: Some("the attribute".into()),
                });
            }
        }
    }
    Ok(())
}

/// What an inode is, as entries say it.
pub(super) fn kind_of(volume: &Volume, number: InodeNumber) -> Option<EntryType> {
    let inode = volume.inode(number).ok()?;
    let kind = inode.read().file_type();
    Some(kind.into())
}
