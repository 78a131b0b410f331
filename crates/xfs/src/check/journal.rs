//! The journal as a check sees it: its state, and that nothing is newer than its end.

use super::checker::Checker;
use super::{LogState, Place};
use crate::log;
use crate::units::Lsn;

/// Looks at the end of the journal: its state, and where the next record goes.
pub(super) fn examine(checker: &Checker) -> (LogState, Option<Lsn>) {
    match log::end(&checker.volume) {
        Ok(end) => (end.state, end.head),
        Err(error) => {
            checker.error("log", Place::Volume, error.to_string());
            (LogState::Dirty, None)
        }
    }
}

/// Nothing on the volume was written later than the journal's last record.
pub(super) fn check_positions(checker: &Checker) {
    let latest = checker.latest_lsn();
    if let Some(head) = checker.head.filter(|head| latest > *head) {
        let text = |lsn: Lsn| format!("cycle {}, block {}", lsn.0 >> 32, lsn.0 & 0xffff_ffff);
        let what = format!(
            "metadata carries the log position {}, but the log ends at {}; `xfs_repair` makes a \
             log that begins behind it",
            text(latest),
            text(head)
        );
        checker.error("log", Place::Volume, what);
    }
}
