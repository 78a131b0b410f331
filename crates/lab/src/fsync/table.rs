//! Tables of the experiment on fsync.

use super::outcome::FsyncOutcome;
use crate::report::blocks::{Blocks, Table};
use crate::report::number::{counted, percent, thousands};

/// Writes the cumulative table of fs_mark for each outcome, then one row for each in one table.
pub(crate) fn write(outcomes: &[&FsyncOutcome], blocks: &mut Blocks) {
    let kilobytes = |bytes: Option<f64>| {
        bytes.map_or_else(|| "-".into(), |bytes| format!("{:.1}", bytes / 1e3))
    };
    for one in outcomes {
        blocks.gap();
        blocks.line(format!(
            "{}, mode {}, {} with {} each",
            one.target,
            one.mode,
            counted(one.threads, "thread"),
            counted(one.directories, "directory")
        ));
        let mut table = Table::new()
            .numbers("Count")
            .numbers("Size")
            .numbers("Files/sec")
            .numbers("App Overhead")
            .numbers("Memory KiB")
            .numbers("CPU us/file")
            .numbers("Log writes")
            .numbers("KB written/file")
            .numbers("KB read/file");
        for iteration in &one.iterations {
            table.row([
                iteration.count.to_string(),
                one.size.to_string(),
                format!("{:.1}", iteration.files_per_second),
                iteration.app_overhead_us.to_string(),
                (iteration.resident_bytes / 1024).to_string(),
                format!("{:.1}", iteration.cpu_ns_per_file / 1e3),
                iteration.log_writes.map_or_else(|| "-".into(), |writes| writes.to_string()),
                kilobytes(iteration.bytes_written_per_file),
                kilobytes(iteration.bytes_read_per_file),
            ]);
        }
        blocks.table(table);
    }
    blocks.gap();
    write_summary(outcomes, blocks);
}

fn write_summary(outcomes: &[&FsyncOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("target")
        .words("mode")
        .numbers("threads")
        .group("files/s")
        .numbers("variation")
        .numbers("MB/s")
        .group("fsyncs/log write")
        .numbers("flushes/fsync")
        .numbers("tag waits")
        .group("switches/file")
        .numbers("machine's")
        .numbers("CPU us/file")
        .group("lat p50 us")
        .numbers("p99")
        .numbers("max");
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for one in outcomes {
        let writes = one.log_writes_per_fsync.filter(|writes| *writes > 0.0);
        table.row([
            one.target.clone(),
            one.mode.to_string(),
            one.threads.to_string(),
            thousands(one.files_per_second),
            percent(one.coefficient_of_variation),
            format!("{:.1}", one.bytes_per_second / 1e6),
            or_unknown(writes.map(|writes| format!("{:.1}", 1.0 / writes))),
            or_unknown(one.flushes_per_fsync.map(|flushes| format!("{flushes:.4}"))),
            or_unknown(one.tag_waits.map(|waits| waits.to_string())),
            format!("{:.3}", one.context_switches_per_file),
            format!("{:.3}", one.machine_switches_per_file),
            format!("{:.1}", one.cpu_ns_per_file / 1e3),
            format!("{:.0}", one.latency.p50),
            format!("{:.0}", one.latency.p99),
            format!("{:.0}", one.latency.max),
        ]);
    }
    blocks.table(table);
}
