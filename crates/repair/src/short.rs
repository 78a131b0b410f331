//! A device that ends before the volume: if nothing lies behind its end, the volume ends with it.

use std::sync::atomic::{AtomicBool, Ordering};

use undercroft_xfs::format::{FileType, inode_crc_matches};

use crate::action::{Action, Place};
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::faults::Faults;
use crate::inode::contents;
use crate::inode::sound::Sound;
use crate::owners::Owners;
use crate::pass;
use crate::subject::Subject;

/// Refuses a volume that was made shorter, if something lies behind its new end: blocks of a file, or a file
/// that an entry leads to.
pub(crate) fn settle(subject: &mut Subject, needed: u64) -> Result<(), RepairError> {
    let chunks = Chunks::read(subject, &Faults::default(), &mut Owners::default())?;
    let is_behind = AtomicBool::new(false);
    let volume = &*subject;
    pass::over(
        volume,
        &chunks,
        || (),
        |(), found| {
            if !found.in_use || is_behind.load(Ordering::Relaxed) {
                return Ok(());
            }
            let is_cut = match Sound::read(volume, found.number, found.bytes) {
                None => inode_crc_matches(found.bytes),
                Some(sound) if sound.core.file_type() == Some(FileType::Directory) => {
                    let (entries, _) = contents::entries(volume, &sound, found.bytes)?;
                    entries.iter().any(|entry| !volume.geometry.valid_inode(entry.inode))
                }
                Some(_) => false,
            };
            if is_cut {
                is_behind.store(true, Ordering::Relaxed);
            }
            Ok(())
        },
    )?;
    if is_behind.into_inner() {
        let end = subject.scratch.below().capacity().0 * 512;
        return Err(RepairError::Short { end, needed });
    }
    let blocks = subject.geometry.blocks;
    let what = format!("the device is too short, and nothing lies behind its end: {blocks} blocks");
    subject.actions.insert(0, Action { place: Place::Volume, what, loss: None });
    Ok(())
}
