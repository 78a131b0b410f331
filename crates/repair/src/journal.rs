//! The journal: replayed before anything is judged; dropped where that cannot be, and said.

use undercroft_xfs::format::Superblock;
use undercroft_xfs::recovery::{recover, renew_journal};

use crate::action::{Action, Place};
use crate::commit;
use crate::error::RepairError;
use crate::scratch::Scratch;

/// Makes the journal empty: by replay, if that can be.
pub(crate) fn settle(
    scratch: Scratch,
    superblock: &Superblock,
    actions: &mut Vec<Action>,
) -> Result<(Scratch, Option<u32>), RepairError> {
    let note = |actions: &mut Vec<Action>, what: String, loss: Option<&str>| {
        actions.push(Action { place: Place::Volume, what, loss: loss.map(str::to_owned) });
    };
    let area = commit::journal(&superblock.geometry());
    let replayed = recover(&scratch.device(), &mut |_| {});
    match replayed {
        _ if scratch.unreadable(area) > 0 => {
            let what = "sectors of the journal cannot be read: it is emptied".to_owned();
            note(actions, what, Some("changes that were in the journal alone"));
        }
        Ok(None) => return Ok((scratch, None)),
        Ok(Some(report)) => {
            let what = format!("the journal is replayed ({} transactions)", report.transactions);
            note(actions, what, None);
            return Ok((scratch, None));
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
    let cycle = next_cycle(superblock.lsn.cycle());
    renew_journal(&changed.device(), superblock, cycle)?;
    Ok((changed, Some(cycle)))
}

/// The cycle behind another one.
pub(crate) fn next_cycle(cycle: u32) -> u32 {
    cycle.min(u32::MAX - 2) + 1
}
