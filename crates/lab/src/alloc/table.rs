//! Tables of the experiments on the allocator: those of the workload in the shape of Foster's of
//! 2019.

use super::outcome::{AllocOutcome, LayoutFigures, OperationTimes, SearchOutcome};
use crate::report::blocks::{Blocks, Table};
use crate::report::number::{percent, thousands};

/// Writes each run as the source has it, and all of them side by side at the end.
pub(crate) fn write(outcomes: &[&AllocOutcome], blocks: &mut Blocks) {
    for one in outcomes {
        blocks.line(format!("- {} free space, {}:", one.free_space, one.variant));
        for row in &one.operations {
            write_operation(one, row, blocks);
        }
        let count: u64 = one.operations.iter().map(|row| row.latency.count).sum();
        blocks.line(format!(
            "IO Summary: {count} ops, {:.3} ops/s, {:.1}mb/s in {:.1} seconds",
            count as f64 / one.seconds,
            megabytes(one) / one.seconds,
            one.seconds
        ));
        match &one.layout {
            Some(layout) => write_layout(layout, blocks),
            None => blocks.line("where the extents are: unmount it, then `undercroft frag`"),
        }
        blocks.gap();
    }
    write_comparison(outcomes, blocks);
}

fn megabytes(one: &AllocOutcome) -> f64 {
    one.data_bytes as f64 / f64::from(1 << 20)
}

fn write_operation(one: &AllocOutcome, row: &OperationTimes, blocks: &mut Blocks) {
    let rate = if row.operation == "writefile" { megabytes(one) / one.seconds } else { 0.0 };
    blocks.line(format!(
        "{:<16} {:>8}ops {:>8.0}ops/s {rate:>9.1}mb/s {:>9.4}ms/op {:>8.1}us/op-cpu [p99 {:.3}ms - \
         {:.3}ms]",
        row.operation,
        row.latency.count,
        row.latency.count as f64 / one.seconds,
        row.latency.mean / 1e3,
        row.cpu_us,
        row.latency.p99 / 1e3,
        row.latency.max / 1e3,
    ));
}

fn write_layout(layout: &LayoutFigures, blocks: &mut Blocks) {
    let LayoutFigures { actual, ideal, inodes, .. } = layout;
    let factor = actual.saturating_sub(*ideal) as f64 * 100.0 / (*actual).max(1) as f64;
    blocks.line(format!("actual {actual}, ideal {ideal}, fragmentation factor {factor:.2}%"));
    let average = *actual as f64 / (*inodes).max(1) as f64;
    blocks.line(format!("Files on this filesystem average {average:.2} extents per file"));
    blocks.histogram(&layout.distances, *actual);
}

fn write_comparison(outcomes: &[&AllocOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("free space")
        .words("variant")
        .group("extents")
        .numbers("per file")
        .group("other group")
        .numbers("with fillers")
        .numbers("> 1 MiB")
        .numbers("> 8 MiB")
        .numbers("median")
        .numbers("mean")
        .group("free extents")
        .numbers("longest")
        .group("fsync us")
        .numbers("p99")
        .numbers("ops/s");
    for one in outcomes {
        let Some(layout) = &one.layout else { continue };
        let sync = one.operations.iter().find(|row| row.operation == "fsync");
        let latency = sync.map(|row| row.latency).unwrap_or_default();
        let count: u64 = one.operations.iter().map(|row| row.latency.count).sum();
        table.row([
            one.free_space.clone(),
            one.variant.clone(),
            layout.actual.to_string(),
            format!("{:.3}", layout.actual as f64 / layout.inodes.max(1) as f64),
            percent(layout.switches()),
            percent(layout.switches_with_fillers),
            percent(layout.beyond(256)),
            percent(layout.beyond(2048)),
            layout.median_distance.map_or_else(String::new, |median| median.to_string()),
            layout.mean_distance.map_or_else(String::new, |mean| format!("{mean:.0}")),
            layout.free_extents.to_string(),
            layout.longest_free.to_string(),
            format!("{:.1}", latency.mean),
            format!("{:.1}", latency.p99),
            thousands(count as f64 / one.seconds),
        ]);
    }
    blocks.table(table);
}

/// Writes one row for each variant and number of free extents.
pub(crate) fn write_searches(outcomes: &[&SearchOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("free space")
        .numbers("extents")
        .words("variant")
        .group("allocations/s")
        .numbers("of near-2018")
        .numbers("of near")
        .group("us p50")
        .numbers("mean")
        .numbers("p99")
        .numbers("p99.9")
        .numbers("max")
        .numbers("first")
        .numbers("KB read");
    let mut last: Option<&SearchOutcome> = None;
    for one in outcomes {
        let place = |of: &SearchOutcome| (of.free_space.clone(), of.free_extents);
        if last.replace(one).is_some_and(|last| place(last) != place(one)) {
            table.rule('-');
        }
        let of = |variant: &str| {
            let other = outcomes
                .iter()
                .find(|other| other.variant == variant && place(other) == place(one));
            other.map_or_else(String::new, |other| {
                format!("{:.2}", one.per_second / other.per_second)
            })
        };
        table.row([
            one.free_space.clone(),
            one.free_extents.to_string(),
            one.variant.clone(),
            thousands(one.per_second),
            of("near-2018"),
            of("near"),
            format!("{:.2}", one.latency.p50),
            format!("{:.2}", one.latency.mean),
            format!("{:.2}", one.latency.p99),
            format!("{:.2}", one.latency.p999),
            format!("{:.1}", one.latency.max),
            format!("{:.0}", one.first_us),
            format!("{:.2}", one.bytes_read / 1e3),
        ]);
    }
    blocks.table(table);
}
