//! The journal: whose it is, whether it must be replayed first, and that nothing on the volume is
//! newer than its end.

use super::checker::Checker;
use super::{Finding, Location};
use crate::format::VersionBits;
use crate::log::{LogEnds, LogState};
use crate::units::Lsn;

const STRUCTURE: &str = "log";

/// Reports on the end of the journal.
pub(super) fn check(checker: &Checker, end: &LogEnds) {
    if checker.volume.recovery().is_some() {
        let what = "was not unmounted: this is the volume with its journal replayed in memory";
        checker.add(Finding::warning(STRUCTURE, Location::Volume, what));
    } else if end.state == LogState::Dirty {
        let what = "was not unmounted: replay its journal first, then check again";
        checker.add(Finding::warning(STRUCTURE, Location::Volume, what));
    }
    if let Some(what) = &end.contradiction {
        checker.error(STRUCTURE, Location::Volume, what);
    }
    let version_2 = checker.geometry().features.version.contains(VersionBits::LOGV2);
    if version_2 && end.last.is_some_and(|(_, buffer_bytes)| buffer_bytes == 0) {
        let what = "is 0 in the last record";
        checker
            .add(Finding { field: "h_size", ..Finding::error(STRUCTURE, Location::Volume, what) });
    }
    let uuid = checker.geometry().uuid;
    // A record of no volume is left by a change of the UUID that did not get further.
    if let Some(found) = end.uuid.filter(|found| *found != uuid && !found.is_nil()) {
        checker.expect(STRUCTURE, Location::Volume, "h_fs_uuid", found, uuid);
    }
}

/// Nothing on the volume was written later than the journal's last record.
pub(super) fn check_positions(checker: &Checker, end: &LogEnds) {
    let latest = checker.latest_lsn();
    let (next, is_known) = (end.next(), end.head.is_some() || end.state == LogState::Clean);
    if is_known && latest > next {
        let text = |lsn: Lsn| format!("cycle {}, block {}", lsn.cycle(), lsn.block());
        let what = format!(
            "metadata carries the log position {}, but the log ends at {}; `xfs_repair` makes a \
             log that begins behind it",
            text(latest),
            text(next)
        );
        checker.error(STRUCTURE, Location::Volume, what);
    }
}
