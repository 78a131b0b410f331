//! Tables of the experiment on I/Os a second.

use super::outcome::IopsOutcome;
use crate::measure::rate::Rate;
use crate::report::blocks::{Blocks, Table};
use crate::report::number::{percent, rate_cells, thousands};
use crate::statistics::Estimate;

/// How the file is reached, where there is one.
fn cache(one: &IopsOutcome) -> &'static str {
    match one.driver.as_str() {
        "null" | "memory" => "",
        _ if one.direct => "direct",
        _ => "buffered",
    }
}

/// The rate of `one` beside `other`'s, run by run: the median of the ratios with its interval.
fn ratio(one: &Rate, other: &Rate) -> String {
    let ratio = Estimate::of_ratios(&one.iops_of_runs, &other.iops_of_runs);
    ratio.map_or_else(String::new, |ratio| ratio.to_string())
}

/// Writes one row for each driver, number of threads and size of batches. The last column compares
/// with fio's engine of the same kind, where it ran beside.
pub(crate) fn write(outcomes: &[&IopsOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("driver")
        .words("access")
        .numbers("bytes")
        .words("cache")
        .numbers("threads")
        .numbers("batch")
        .group("IOPS")
        .numbers("stddev")
        .numbers("per thread")
        .group("CPU ns/IO")
        .numbers("switches/IO")
        .group("of fio's IOPS")
        .numbers("of its CPU");
    let mut last: Option<&IopsOutcome> = None;
    for one in outcomes {
        if last
            .replace(one)
            .is_some_and(|last| last.driver != one.driver && !last.is_fio_beside(one))
        {
            table.rule('-');
        }
        let fio = outcomes.iter().find(|other| one.is_fio_beside(other));
        let [iops, stddev] = rate_cells(&one.rate);
        table.row([
            one.driver.clone(),
            one.access.to_string(),
            one.block_bytes.to_string(),
            cache(one).to_owned(),
            one.threads.to_string(),
            one.batch.to_string(),
            iops,
            stddev,
            thousands(one.rate.iops / one.threads as f64),
            format!("{:.1}", one.rate.cpu_ns_per_io),
            format!("{:.4}", one.rate.voluntary_switches_per_io),
            fio.map_or_else(String::new, |fio| ratio(&one.rate, &fio.rate)),
            fio.map_or_else(String::new, |fio| {
                percent(one.rate.cpu_ns_per_io / fio.rate.cpu_ns_per_io)
            }),
        ]);
    }
    blocks.table(table);
}
