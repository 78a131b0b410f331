//! The journal: whose it is, whether it must be replayed first, and that nothing on the volume is
//! newer than its end.

use super::checker::Checker;
use super::{Finding, Place};
use crate::log::{LogEnd, LogState};
use crate::units::Lsn;

const STRUCTURE: &str = "log";

/// Reports on the end of the journal.
pub(super) fn check(checker: &Checker, end: &LogEnd) {
    if end.state == LogState::Dirty {
        let what = "was not unmounted: replay the journal first (mount it once), then check again";
        checker.add(Finding::notice(STRUCTURE, Place::Volume, what));
    }
    let uuid = checker.geometry().uuid;
    if let Some(found) = end.uuid.filter(|found| *found != uuid) {
        checker.expect(STRUCTURE, Place::Volume, "h_fs_uuid", found, uuid);
    }
}

/// Nothing on the volume was written later than the journal's last record.
pub(super) fn check_positions(checker: &Checker, end: &LogEnd) {
    let latest = checker.latest_lsn();
    if let Some(next) = end.next.filter(|next| latest > *next) {
        let text = |lsn: Lsn| format!("cycle {}, block {}", lsn.0 >> 32, lsn.0 & 0xffff_ffff);
        let what = format!(
            "metadata carries the log position {}, but the log ends at {}; `xfs_repair` makes a \
             log that begins behind it",
            text(latest),
            text(next)
        );
        checker.error(STRUCTURE, Place::Volume, what);
    }
}
