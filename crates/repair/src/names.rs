//! Names: entries of directories, the inodes that they lead to, parent pointers and link counts made to agree;
//! files that nothing leads to get their names back by what they say themselves, or a place in `lost+found`.

mod graph;
mod lost_found;
mod refill;

use std::sync::Arc;

use undercroft_xfs::Volume;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;

use crate::action::Action;
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::inode::contents::Refill;
use crate::subject::Subject;
use graph::Graph;

/// What the names need of the steps before.
pub(crate) struct Work {
    /// Contents of inodes that are empty now.
    pub(crate) refills: Vec<(InodeNumber, Refill)>,
    /// Files that the superblock leads to.
    pub(crate) rooted: Vec<InodeNumber>,
}

/// Makes all names agree, on a volume whose groups are sound.
pub(crate) fn mend(subject: &mut Subject, chunks: &Chunks, work: &Work) -> Result<(), RepairError> {
    let volume = Arc::new(Volume::open_live(subject.device(), &LiveOptions::default())?);
    let mut actions: Vec<Action> = Vec::new();
    let done = steps(subject, &volume, chunks, work, &mut actions);
    let closed = volume.close();
    subject.actions.append(&mut actions);
    done?;
    Ok(closed?)
}

fn steps(
    subject: &Subject,
    volume: &Arc<Volume>,
    chunks: &Chunks,
    work: &Work,
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    refill::fill(subject, volume, chunks, &work.refills, actions)?;
    let mut graph = Graph::read(subject, volume, chunks, work)?;
    graph.remove_false_entries(volume, actions)?;
    graph.connect(volume, actions)?;
    graph.settle_parents(volume, actions)?;
    graph.settle_links(volume, actions)?;
    graph.settle_pointers(volume, actions)
}
