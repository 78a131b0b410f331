//! The table of the experiment on unplugging.

use std::io::{self, Write};

use super::number::{percent, thousands};
use crate::text_table::TextTable;
use crate::unplug::{UnplugOutcome, Variant};

/// Writes one row for each variant, with its gain over the one that takes every lock.
pub(super) fn write(outcomes: &[&UnplugOutcome], out: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new()
        .words("variant")
        .group("IOPS")
        .numbers("stddev")
        .numbers("gain")
        .group("unplugs/IO")
        .numbers("locks/IO")
        .numbers("for nothing")
        .group("CPU ns/IO")
        .numbers("switches/IO")
        .group("lat mean us")
        .numbers("p50")
        .numbers("p99");
    let locked = outcomes.iter().find(|one| one.variant == Variant::Locked);
    for one in outcomes {
        let gain = locked.filter(|locked| locked.rate.iops > 0.0);
        table.row([
            one.variant.to_string(),
            thousands(one.rate.iops),
            thousands(one.rate.stddev),
            gain.map_or_else(String::new, |from| percent(one.rate.iops / from.rate.iops - 1.0)),
            format!("{:.3}", one.unplugs_per_io),
            format!("{:.3}", one.locks_per_io),
            format!("{:.3}", one.idle_locks_per_io),
            format!("{:.0}", one.rate.cpu_ns_per_io),
            format!("{:.3}", one.rate.voluntary_switches_per_io),
            format!("{:.1}", one.latency.mean),
            format!("{:.1}", one.latency.p50),
            format!("{:.1}", one.latency.p99),
        ]);
    }
    table.write(out)
}
