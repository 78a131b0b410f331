//! Tables of the experiment on affinity, as Brunelle's of 2008.

use super::outcome::{AffinityOutcome, Placement};
use crate::report::blocks::{Blocks, Table};

/// Writes one table for each workload and mechanism.
pub(crate) fn write(outcomes: &[&AffinityOutcome], blocks: &mut Blocks) {
    let tables = outcomes.chunk_by(|a, b| (a.workload, a.mechanism) == (b.workload, b.mechanism));
    for (index, rows) in tables.enumerate() {
        if index > 0 {
            blocks.gap();
        }
        let AffinityOutcome { workload, mechanism, devices, outstanding, block_bytes, .. } =
            rows[0];
        blocks.line(format!(
            "{workload}: {devices} devices, {outstanding} reads of {block_bytes} bytes outstanding \
             on each; completions redirected by {mechanism}"
        ));
        write_rows(rows, blocks);
    }
}

fn write_rows(rows: &[&AffinityOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("A Q C")
        .group("MBPS")
        .numbers("Avg Lat")
        .numbers("StdDev")
        .group("Q-local")
        .numbers("Q-remote")
        .group("C-local")
        .numbers("C-remote")
        .group("CPU us/IO")
        .numbers("switches/IO")
        .group("CPUs I A Q C");
    let mut last = None;
    for one in rows {
        if let Some(symbol) = last.replace(one.placement).and_then(|last| rule(last, one.placement))
        {
            table.rule(symbol);
        }
        let cpu = |cpu: Option<u32>| cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string());
        table.row([
            one.placement.to_string(),
            format!("{:.1}", one.mbps),
            format!("{:.6}", one.latency_seconds),
            format!("{:.6}", one.latency_stddev),
            format!("{:.1}", one.q_local),
            format!("{:.1}", one.q_remote),
            format!("{:.1}", one.c_local),
            format!("{:.1}", one.c_remote),
            format!("{:.3}", one.rate.cpu_ns_per_io / 1e3),
            format!("{:.3}", one.rate.voluntary_switches_per_io),
            format!(
                "{} {} {} {}",
                one.on.interrupt,
                cpu(one.on.application),
                cpu(one.on.queue),
                cpu(one.on.completion)
            ),
        ]);
    }
    blocks.table(table);
}

/// What stands between two rows, as in the source.
fn rule(above: Placement, below: Placement) -> Option<char> {
    match (above, below) {
        (
            Placement::Pinned { application, queue, .. },
            Placement::Pinned { application: next_application, queue: next_queue, .. },
        ) => {
            if application != next_application {
                Some('=')
            } else {
                (queue != next_queue).then_some('-')
            }
        }
        (Placement::Pinned { .. }, Placement::Free { .. }) => Some('='),
        _ => None,
    }
}
