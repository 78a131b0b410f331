//! The table of the experiment on unplugging.

use super::outcome::{UnplugOutcome, Variant};
use crate::report::blocks::{Blocks, Table};
use crate::report::number::{latency_cells, percent, rate_cells};

/// Writes one row for each variant, with its gain over the one that takes every lock.
pub(crate) fn write(outcomes: &[&UnplugOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .numbers("service us")
        .words("variant")
        .group("IOPS")
        .numbers("stddev")
        .numbers("gain")
        .group("unplugs/IO")
        .numbers("locks/IO")
        .numbers("if idle")
        .group("CPU ns/IO")
        .numbers("switches/IO")
        .group("lat mean us")
        .numbers("p50")
        .numbers("p99");
    let mut last: Option<&UnplugOutcome> = None;
    for one in outcomes {
        if last.replace(one).is_some_and(|last| last.service_us != one.service_us) {
            table.rule('-');
        }
        let locked = outcomes
            .iter()
            .find(|other| other.variant == Variant::Locked && other.service_us == one.service_us);
        let gain = locked.filter(|locked| locked.rate.iops > 0.0);
        let [iops, stddev] = rate_cells(&one.rate);
        let [mean, p50, p99] = latency_cells(&one.latency);
        table.row([
            format!("{:.0}", one.service_us),
            one.variant.to_string(),
            iops,
            stddev,
            gain.map_or_else(String::new, |from| percent(one.rate.iops / from.rate.iops - 1.0)),
            format!("{:.3}", one.unplugs_per_io),
            format!("{:.3}", one.locks_per_io),
            format!("{:.3}", one.locks_per_idle_unplug),
            format!("{:.0}", one.rate.cpu_ns_per_io),
            format!("{:.3}", one.rate.voluntary_switches_per_io),
            mean,
            p50,
            p99,
        ]);
    }
    blocks.table(table);
}
