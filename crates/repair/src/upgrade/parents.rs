//! Parent pointers made from the entries of all directories.

use std::sync::Arc;

use undercroft_xfs::Volume;
use undercroft_xfs::format::{Incompat, Superblock};
use undercroft_xfs::ops::mend::{self, LinkedName};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;

use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::names;
use crate::pass;
use crate::subject::Subject;
use crate::superblock;

/// Gives all files and directories their pointers, with the engine; returns how many there are. The other
/// features are the old ones meanwhile, as their trees are not there yet.
pub(super) fn add(
    subject: &mut Subject,
    chunks: &Chunks,
    target: &Superblock,
) -> Result<usize, RepairError> {
    let parts = pass::over(subject, chunks, Vec::new, |links, found| {
        names::names_of(subject, found, &mut |generation, entry| {
            let (directory, name) = (found.number, entry.name);
            links.push((entry.inode, LinkedName { directory, generation, name }));
        })
    })?;
    let mut links: Vec<(InodeNumber, LinkedName)> = parts.into_iter().flatten().collect();
    links.sort_unstable();
    let mut with_pointers = subject.superblock.clone();
    with_pointers.features.incompat |= target.features.incompat & Incompat::PARENT;
    with_pointers.features.version = target.features.version;
    superblock::write(&subject.scratch, &with_pointers)?;
    let volume = Arc::new(Volume::open_live(subject.device(), &LiveOptions::default())?);
    let done = links.chunk_by(|(one, _), (other, _)| one == other).try_for_each(|of_one| {
        let names: Vec<LinkedName> = of_one.iter().map(|(_, name)| name.clone()).collect();
        mend::change_parents(&volume, of_one[0].0, &[], &names)
    });
    let closed = volume.close();
    done?;
    closed?;
    subject.reload()?;
    Ok(links.len())
}
