//! Names: entries of directories, the inodes that they lead to, parent pointers and link counts made to agree;
//! files that nothing leads to get their names back by what they say themselves, or a place in `lost+found`.

mod agreement;
mod census;
mod connect;
mod lost_found;
mod pointers;
mod reading;
mod refill;

use std::sync::Arc;

use undercroft_xfs::Volume;
use undercroft_xfs::ops::mend;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;

use crate::action::{Action, Place};
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::inode::contents::Refill;
use crate::subject::Subject;
use connect::Connector;
use lost_found::LostFound;
use reading::FalseEntry;
pub(crate) use reading::names_of;

/// What the names need of the steps before.
pub(crate) struct Work {
    /// Contents of inodes that are empty now.
    pub(crate) refills: Vec<(InodeNumber, Refill)>,
    /// Files that the superblock leads to.
    pub(crate) rooted: Vec<InodeNumber>,
}

/// Makes all names agree, on a volume whose groups are sound. What is on the volume is read without the engine,
/// between its changes.
pub(crate) fn mend(subject: &mut Subject, chunks: &Chunks, work: &Work) -> Result<(), RepairError> {
    if !work.refills.is_empty() {
        live(subject, |subject, volume, actions| {
            refill::fill(subject, volume, chunks, &work.refills, actions)
        })?;
    }
    let (mut census, wrong) = reading::take(subject, chunks, &work.rooted)?;
    census.paths = work
        .refills
        .iter()
        .filter(|(_, refill)| !refill.paths.is_empty())
        .map(|(number, refill)| (number.0, refill.paths.clone()))
        .collect();
    let census = live(subject, |subject, volume, actions| {
        remove_false_entries(volume, wrong, actions)?;
        let lost_found = LostFound::default();
        let mut connector = Connector { subject, volume, census: &mut census, lost_found, actions };
        connector.connect()?;
        let grown = connector.lost_found.grown;
        agreement::parents(volume, &census, actions)?;
        agreement::links(subject, volume, (&census, &grown), actions)?;
        Ok(census)
    })?;
    if !census.has_pointers {
        return Ok(());
    }
    let wanted = agreement::wrong_pointers(subject, chunks, &census)?;
    if wanted.is_empty() {
        return Ok(());
    }
    live(subject, |_, volume, actions| agreement::pointers(volume, wanted, actions))
}

/// Works on the volume with the engine; all of it is on the device then.
fn live<T>(
    subject: &mut Subject,
    work: impl FnOnce(&Subject, &Arc<Volume>, &mut Vec<Action>) -> Result<T, RepairError>,
) -> Result<T, RepairError> {
    let volume = Arc::new(Volume::open_live(subject.device(), &LiveOptions::default())?);
    let mut actions: Vec<Action> = Vec::new();
    let done = work(subject, &volume, &mut actions);
    let closed = volume.close();
    subject.actions.append(&mut actions);
    let done = done?;
    closed?;
    Ok(done)
}

fn remove_false_entries(
    volume: &Volume,
    wrong: Vec<FalseEntry>,
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    for entry in wrong {
        let FalseEntry { directory, name, child, right } = entry;
        let shown = String::from_utf8_lossy(&name).into_owned();
        mend::remove_entry(volume, directory, &name)?;
        let what = match right {
            Some(kind) => {
                mend::add_entry(volume, directory, &name, child, kind)?;
                format!("the entry {shown:?} says another kind of file: set right")
            }
            None => format!("the entry {shown:?} leads nowhere: removed"),
        };
        actions.push(Action { place: Place::Inode(directory), what, loss: None });
    }
    Ok(())
}
