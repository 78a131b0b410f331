//! `undercroft lab unplug`.

use super::runner::{self, CommonArgs, chosen_or};
use crate::report::Outcome;
use anyhow::Result;
use clap::ValueEnum;
use std::io::Write;
use std::time::Duration;
use undercroft_lab::unplug::{self, UnplugOptions, Variant};

/// Unplug a device made of 48: the cost of a lock for each of them.
///
/// In 2008 an OLTP benchmark ran on one logical device over 48 disks. A disk held requests back for
/// some milliseconds so that neighbours could leave together: it was plugged. A thread that waited
/// for an I/O unplugged the logical device, which unplugged all 48 disks, and each took its lock
/// only to find nothing held back. Those locks were 13 % of all samples; testing a flag first made
/// the whole benchmark 18 % faster (Patocka, Anderson, Axboe). Since 2011 the submitting thread
/// holds requests back, and there is nothing to unplug.
///
///   locked       unplugging takes the lock of every disk
///   test-first   it looks at a flag, and takes the lock of plugged disks only
///   thread-plug  disks hold nothing back, the submitting threads do
///
/// The mix: transactions of three reads and a write of 8 KiB at random places, each waited for, and
/// an append of 4 KiB to a log, waited for; every fourth transaction writes a page and does not
/// wait. The disks are null devices: once they answer where the request is sent on, as a cache
/// does, and once after 100 microseconds.
///
/// Reading the table: gain is that over locked. unplugs/IO counts calls for the logical device,
/// locks/IO the locks of disks that were taken, to hold requests back or to send them on; "if idle"
/// the locks that one call took when no disk held anything. Latencies are of I/Os waited for.
///
/// For example: undercroft lab unplug --leaves 48 --threads 16
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only this variant; may be given several times.
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Vec<VariantArg>,

    /// Disks under the logical device.
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u16).range(1..=1024))]
    leaves: u16,

    /// Threads of the mix.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,

    /// Time that a disk takes for a request, in microseconds; may be given several times. Without
    /// it, 0 and 100.
    #[arg(long = "service", value_name = "MICROSECONDS")]
    services: Vec<u32>,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum VariantArg {
    Locked,
    TestFirst,
    ThreadPlug,
}

impl From<VariantArg> for Variant {
    fn from(variant: VariantArg) -> Self {
        match variant {
            VariantArg::Locked => Self::Locked,
            VariantArg::TestFirst => Self::TestFirst,
            VariantArg::ThreadPlug => Self::ThreadPlug,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let defaults = UnplugOptions::default();
    let services: Vec<Duration> =
        args.services.iter().map(|&micros| Duration::from_micros(micros.into())).collect();
    let options = UnplugOptions {
        variants: chosen_or(&args.variants, &defaults.variants),
        leaves: args.leaves.into(),
        threads: args.threads.into(),
        service_times: chosen_or(&services, &defaults.service_times),
    };
    runner::run(&args.common, out, |run, found| unplug::run(&options, run, found))?;
    Ok(Outcome::Done)
}
