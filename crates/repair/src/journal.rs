//! The journal: replayed before anything is judged; dropped where that cannot be, and said.

use undercroft_xfs::format::Superblock;
use undercroft_xfs::recovery::{recover, renew_journal};

use crate::action::{Action, Place};
use crate::error::RepairError;
use crate::scratch::Scratch;

/// Makes the journal empty: by replay, if that can be.
pub(crate) fn settle(
    scratch: Scratch,
    superblock: &Superblock,
    actions: &mut Vec<Action>,
) -> Result<Scratch, RepairError> {
    let note = |actions: &mut Vec<Action>, what: String, loss: Option<&str>| {
        actions.push(Action { place: Place::Volume, what, loss: loss.map(str::to_owned) });
    };
    match recover(&scratch.device(), &mut |_| {}) {
        Ok(None) => return Ok(scratch),
        Ok(Some(report)) => {
            let what = format!("the journal is replayed ({} transactions)", report.transactions);
            note(actions, what, None);
            return Ok(scratch);
        }
        Err(error) => {
            let what = format!("the journal cannot be replayed ({error}): it is emptied");
            note(actions, what, Some("changes that were in the journal alone"));
        }
    }
    // What replay changed before it failed is no whole state.
    let changed = scratch.renewed();
    let first = scratch.read(undercroft_block::Sector(0), superblock.geometry().sector_size())?;
    changed.write(undercroft_block::Sector(0), &first)?;
    renew_journal(&changed.device(), superblock, next_cycle(superblock))?;
    Ok(changed)
}

/// The cycle behind the one in which the superblock was written.
pub(crate) fn next_cycle(superblock: &Superblock) -> u32 {
    superblock.lsn.cycle().clamp(0, u32::MAX - 2) + 1
}
