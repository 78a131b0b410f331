//! The other sides of entries made to agree with them: "..", link counts, parent pointers.

use std::collections::{BTreeMap, BTreeSet};

use undercroft_xfs::Volume;
use undercroft_xfs::format::{FileType, NLINK_MAX, NLINK_PINNED};
use undercroft_xfs::ops::mend::{self, LinkedName};
use undercroft_xfs::units::InodeNumber;

use super::census::Census;
use super::reading;
use crate::action::{Action, Place};
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::pass;
use crate::subject::Subject;

/// Makes ".." of directories lead to those with their entries.
pub(super) fn parents(
    volume: &Volume,
    census: &Census,
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    for (number, directory) in &census.directories {
        let number = InodeNumber(*number);
        let is_root = number == census.root;
        let expected = if is_root { number } else { InodeNumber(directory.parent) };
        if directory.dot_dot != expected.0 {
            mend::set_dot_dot(volume, number, expected)?;
            let what = format!("\"..\" leads elsewhere: set to directory {expected}");
            actions.push(Action { place: Place::Inode(number), what, loss: None });
        }
    }
    Ok(())
}

/// Makes link counts those of the entries. `grown` are directories that the engine counted one more link of.
pub(super) fn links(
    subject: &Subject,
    volume: &Volume,
    (census, grown): (&Census, &[InodeNumber]),
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    let mut settle = |number: InodeNumber, found: u32, expected: u32| {
        let expected = if expected > NLINK_MAX { NLINK_PINNED } else { expected };
        if found == expected {
            return Ok(());
        }
        mend::set_links(volume, number, expected)?;
        let what = format!("the link count is {found}: set to {expected}");
        actions.push(Action { place: Place::Inode(number), what, loss: None });
        Ok::<(), RepairError>(())
    };
    for (number, directory) in &census.directories {
        let number = InodeNumber(*number);
        let more = grown.iter().filter(|it| **it == number).count() as u32;
        settle(number, directory.links + more, 2 + directory.children + more)?;
    }
    for node in census.nodes(subject).filter(|node| node.kind != FileType::Directory) {
        let rooted = u32::from(census.rooted.contains(&node.number.0));
        let balance = node.balance.wrapping_add(rooted);
        if balance != 0 {
            let found = volume.inode(node.number)?.read().core.nlink;
            settle(node.number, found, found.wrapping_add(balance))?;
        }
    }
    Ok(())
}

/// The inodes whose parent pointers are not those of their entries, and what they should be.
pub(super) type Wanted = BTreeMap<InodeNumber, BTreeSet<LinkedName>>;

/// Finds inodes whose parent pointers are wrong; all entries are on the device by now.
pub(super) fn wrong_pointers(
    subject: &Subject,
    chunks: &Chunks,
    census: &Census,
) -> Result<Wanted, RepairError> {
    let nodes = census.nodes(subject);
    let wrong: Vec<_> = nodes.filter(|it| !it.has_own_pointers).map(|it| it.number).collect();
    let mut wanted: Wanted = wrong.iter().map(|number| (*number, BTreeSet::new())).collect();
    if wanted.is_empty() {
        return Ok(wanted);
    }
    let is_wanted = |number: InodeNumber| wrong.binary_search(&number).is_ok();
    let parts = pass::over(subject, chunks, Vec::new, |names, found| {
        reading::names_of(subject, found, &mut |generation, entry| {
            if is_wanted(entry.inode) {
                let (directory, name) = (found.number, entry.name);
                names.push((entry.inode, LinkedName { directory, generation, name }));
            }
        })
    })?;
    for (number, name) in parts.into_iter().flatten() {
        if let Some(names) = wanted.get_mut(&number) {
            names.insert(name);
        }
    }
    Ok(wanted)
}

/// Makes parent pointers those of the entries.
pub(super) fn pointers(
    volume: &Volume,
    wanted: Wanted,
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    for (number, names) in wanted {
        let inode = volume.inode(number)?;
        let found = mend::parent_pointers(volume, &inode.read())?;
        let gone: Vec<_> = found.iter().filter(|name| !names.contains(name)).cloned().collect();
        let new: Vec<_> = names.into_iter().filter(|name| !found.contains(name)).collect();
        if gone.is_empty() && new.is_empty() {
            continue;
        }
        mend::change_parents(volume, number, &gone, &new)?;
        let what = format!(
            "its parent pointers are not those of its names: {} removed, {} added",
            gone.len(),
            new.len()
        );
        actions.push(Action { place: Place::Inode(number), what, loss: None });
    }
    Ok(())
}
