//! `--stats`: what passed through the devices of a command.

use crate::text;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use undercroft_block::stack::DeviceReport;
use undercroft_block::{Latencies, QueueLatencies, QueueReport};
#[cfg(feature = "objects")]
use undercroft_store::Traffic;

/// The heading of options that all commands with an image have, below those of the command.
pub(crate) const IMAGE_HEADING: &str = "Image";

/// The option.
#[derive(clap::Args, Default)]
pub(crate) struct StatsArgs {
    /// Print what passed through each device at the end: bios in, requests out, bytes, latencies; GETs of
    /// object stores.
    /// For each hardware queue, the bios whose request was started on the CPU that submitted it
    /// (Q-local) or on another (Q-remote), and the requests answered on the CPU where they ended
    /// (C-local) or handed to another for it (C-remote). As tables on standard error; with --json
    /// as one more line of JSON.
    #[arg(long, help_heading = IMAGE_HEADING)]
    stats: bool,
}

impl StatsArgs {
    /// Whether statistics are wanted.
    pub(crate) fn are_wanted(&self) -> bool {
        self.stats
    }

    /// Prints what went to and from object stores, if wanted and if there are any.
    #[cfg(feature = "objects")]
    pub(crate) fn print_traffic(&self, json: bool, out: &mut dyn Write) -> io::Result<()> {
        let traffic = undercroft_store::traffic();
        match (self.stats && !traffic.is_empty(), json) {
            (false, _) => Ok(()),
            (true, true) => {
                let stores = traffic.iter().map(Store::new).collect();
                crate::report::json_line(out, &Stores { stores })
            }
            (true, false) => stores(&traffic, &mut io::stderr().lock()),
        }
    }

    /// Prints `devices`, if wanted.
    pub(crate) fn print(
        &self,
        devices: &[DeviceReport],
        json: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match (self.stats, json) {
            (false, _) => Ok(()),
            (true, true) => {
                let statistics = devices.iter().map(Device::new).collect();
                crate::report::json_line(out, &Line { statistics })
            }
            (true, false) => table(devices, &mut io::stderr().lock()),
        }
    }
}

#[derive(Serialize)]
struct Line<'r> {
    statistics: Vec<Device<'r>>,
}

#[cfg(feature = "objects")]
#[derive(Serialize)]
struct Stores<'r> {
    stores: Vec<Store<'r>>,
}

/// What went to and from a store, as JSON.
#[cfg(feature = "objects")]
#[derive(Serialize)]
struct Store<'r> {
    store: &'r str,
    gets: u64,
    puts: u64,
    other_requests: u64,
    failed_requests: u64,
    bytes_received: u64,
    bytes_sent: u64,
    bytes_cached: u64,
}

#[cfg(feature = "objects")]
impl<'r> Store<'r> {
    fn new(traffic: &'r Traffic) -> Self {
        Self {
            store: &traffic.store,
            gets: traffic.gets,
            puts: traffic.puts,
            other_requests: traffic.others,
            failed_requests: traffic.failed,
            bytes_received: traffic.bytes_received,
            bytes_sent: traffic.bytes_sent,
            bytes_cached: traffic.bytes_cached,
        }
    }
}

#[cfg(feature = "objects")]
fn stores(traffic: &[Traffic], out: &mut dyn Write) -> io::Result<()> {
    let width = traffic.iter().map(|one| one.store.chars().count()).max().unwrap_or(0);
    let width = width.max("store".len());
    writeln!(
        out,
        "{:width$} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10}",
        "store", "GETs", "PUTs", "others", "failed", "received", "sent", "from cache"
    )?;
    for one in traffic {
        writeln!(
            out,
            "{:width$} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10}",
            one.store,
            one.gets,
            one.puts,
            one.others,
            one.failed,
            text::bytes(one.bytes_received),
            text::bytes(one.bytes_sent),
            text::bytes(one.bytes_cached),
        )?;
    }
    Ok(())
}

/// A device as JSON. Of a stacked one, the sums over the leaves below it.
#[derive(Serialize)]
struct Device<'r> {
    device: &'r str,
    depth: usize,
    leaf: bool,
    bios: u64,
    requests: u64,
    merges: u64,
    mean_request_bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
    flushes: u64,
    errors: u64,
    waits: u64,
    latency: Latency,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queues: Vec<Queue>,
}

/// A hardware queue of a leaf as JSON.
#[derive(Serialize)]
struct Queue {
    queue: String,
    bios: u64,
    requests: u64,
    queued_local: u64,
    queued_remote: u64,
    completed_local: u64,
    completed_remote: u64,
}

impl From<&QueueReport> for Queue {
    fn from(QueueReport { name, statistics, .. }: &QueueReport) -> Self {
        Self {
            queue: name.to_string(),
            bios: statistics.bios,
            requests: statistics.requests,
            queued_local: statistics.queued_local,
            queued_remote: statistics.queued_remote,
            completed_local: statistics.completed_local,
            completed_remote: statistics.completed_remote,
        }
    }
}

#[derive(Serialize)]
struct Latency {
    read: Option<Percentiles>,
    write: Option<Percentiles>,
    other: Option<Percentiles>,
}

/// In nanoseconds.
#[derive(Serialize)]
struct Percentiles {
    count: u64,
    mean: u128,
    p50: u128,
    p99: u128,
    p999: u128,
    max: u128,
}

impl<'r> Device<'r> {
    fn new(report: &'r DeviceReport) -> Self {
        let statistics = &report.statistics;
        let QueueLatencies { read, write, other } = &report.latencies;
        Self {
            device: &report.name,
            depth: report.depth,
            leaf: report.is_leaf,
            bios: statistics.bios,
            requests: statistics.requests,
            merges: statistics.merges(),
            mean_request_bytes: statistics.mean_request_bytes(),
            bytes_read: statistics.bytes_read,
            bytes_written: statistics.bytes_written,
            flushes: statistics.flushes,
            errors: statistics.errors,
            waits: statistics.waits,
            latency: Latency {
                read: Percentiles::of(read),
                write: Percentiles::of(write),
                other: Percentiles::of(other),
            },
            queues: report.queues.iter().map(Queue::from).collect(),
        }
    }
}

impl Percentiles {
    fn of(latencies: &Latencies) -> Option<Self> {
        let quantile = |share| latencies.quantile(share).as_nanos();
        (latencies.count() > 0).then(|| Self {
            count: latencies.count(),
            mean: latencies.mean().as_nanos(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: quantile(1.0),
        })
    }
}

fn table(devices: &[DeviceReport], out: &mut dyn Write) -> io::Result<()> {
    let width = devices.iter().map(|report| name(report).chars().count()).max().unwrap_or(0);
    let width = width.max("hardware queues".len());
    counts(devices, width, out)?;
    latencies(devices, width, out)?;
    queues(devices, width, out)
}

/// The name of a device, indented below the devices stacked on it.
fn name(report: &DeviceReport) -> String {
    format!("{:1$}{2}", "", 2 * report.depth, report.name)
}

fn counts(devices: &[DeviceReport], width: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:width$} {:>9} {:>9} {:>10} {:>10} {:>10} {:>7} {:>6} {:>6}",
        "device", "bios", "requests", "mean size", "read", "written", "flushes", "waits", "errors"
    )?;
    for report in devices {
        let statistics = &report.statistics;
        writeln!(
            out,
            "{:width$} {:>9} {:>9} {:>10} {:>10} {:>10} {:>7} {:>6} {:>6}",
            name(report),
            statistics.bios,
            statistics.requests,
            text::bytes(statistics.mean_request_bytes()),
            text::bytes(statistics.bytes_read),
            text::bytes(statistics.bytes_written),
            statistics.flushes,
            statistics.waits,
            statistics.errors,
        )?;
    }
    Ok(())
}

fn latencies(devices: &[DeviceReport], width: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:width$} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "latency", "", "count", "mean", "p50", "p99", "p99.9", "max"
    )?;
    for report in devices {
        let QueueLatencies { read, write, other } = &report.latencies;
        for (kind, latencies) in [("read", read), ("write", write), ("other", other)] {
            if latencies.count() > 0 {
                let time = |time: Duration| format!("{time:.1?}");
                let quantile = |share| time(latencies.quantile(share));
                writeln!(
                    out,
                    "{:width$} {kind:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
                    name(report),
                    latencies.count(),
                    time(latencies.mean()),
                    quantile(0.5),
                    quantile(0.99),
                    quantile(0.999),
                    quantile(1.0),
                )?;
            }
        }
    }
    Ok(())
}

fn queues(devices: &[DeviceReport], width: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:width$} {:>14} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "hardware queues", "", "bios", "Q-local", "Q-remote", "C-local", "C-remote"
    )?;
    for report in devices {
        for queue in report.queues.iter().map(Queue::from) {
            writeln!(
                out,
                "{:width$} {:>14} {:>9} {:>9} {:>9} {:>9} {:>9}",
                name(report),
                queue.queue,
                queue.bios,
                queue.queued_local,
                queue.queued_remote,
                queue.completed_local,
                queue.completed_remote,
            )?;
        }
    }
    Ok(())
}
