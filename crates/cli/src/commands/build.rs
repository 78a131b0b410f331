//! `undercroft build`.

use crate::format_options::FormatArgs;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::rule_options::RuleArgs;
use crate::stats::StatsArgs;
use crate::{text, value};
use anyhow::Result;
use clap::ValueHint;
use serde::Serialize;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use undercroft_block::stack::Description;
use undercroft_image::pack::{self, Free, PackOptions, SizeChoice, Summary};
use undercroft_source::{Options, SourceSpec};
use undercroft_xfs::mkfs;
use uuid::Uuid;

/// Build a volume from a directory or a tar archive.
///
/// Everything is kept: contents and holes, modes, numeric owners, modification times to the
/// nanosecond, hard links, devices, extended attributes, ACLs. The same input and options give the
/// same bytes.
///
/// Archives are taken as people have them. Where a member comes twice, as tar -r makes them, the later
/// one counts. An archive that ends behind a whole member without the blocks of zeros that end an
/// archive may have been cut off, and is taken with a warning. So are extended attributes outside of
/// the namespaces of Linux (user., trusted., security., system.), which are left out.
///
/// The image appears under its name when it is whole, and not before.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A directory, a tar file (plain, gzip, zstd, xz), or - for a tar stream on standard input.
    source: PathBuf,

    /// The image file to make, or a block device (with --force); or a device stacked on several,
    /// such as 'stripe:64k(a.img,b.img)' or @stack.toml, whose files are made.
    #[arg(value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    image: Description,

    /// Size of the volume: bytes (suffixes K, M, G, T), auto (the content and a tenth of it free,
    /// at least 16 MiB) or min (as small as the content allows).
    #[arg(long, value_name = "SIZE", value_parser = size_choice, default_value = "auto")]
    size: SizeChoice,

    /// Space to leave free for files, in place of a tenth: a share of the volume (20%), or bytes
    /// (500M).
    #[arg(long, value_name = "SHARE|BYTES", value_parser = free, conflicts_with = "size")]
    free: Option<Free>,

    /// The volume will be grown to this size once it is in use, with xfs_growfs or
    /// systemd-growfs: the same as --log-size auto:SIZE. It sets nothing else.
    #[arg(long, value_name = "SIZE", value_parser = value::size, conflicts_with = "log_size")]
    grow_on_boot: Option<u64>,

    /// Replace an image that exists. A target that is mounted is always refused.
    #[arg(long)]
    force: bool,

    /// Return when the image is on stable storage.
    #[arg(long)]
    sync: bool,

    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,

    /// Threads that read ahead in a directory.
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,

    #[command(flatten)]
    stats: StatsArgs,

    #[command(flatten)]
    content: ContentArgs,

    #[command(flatten)]
    format: FormatArgs,
}

/// What of the source is packed, and how archives are read.
#[derive(clap::Args)]
#[command(next_help_heading = "Content")]
struct ContentArgs {
    #[command(flatten)]
    rules: RuleArgs,

    /// Latest modification time of anything, and the birth and change time of everything, in
    /// seconds since 1970. Entries that rules make have this time.
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", allow_negative_numbers = true)]
    source_date_epoch: Option<i64>,

    /// Take absolute paths in an archive as relative to the root instead of refusing them.
    #[arg(long)]
    strip_absolute: bool,

    /// Refuse what would be taken with a warning: archives that may not be whole, rules that match
    /// nothing.
    #[arg(long)]
    strict: bool,

    /// Identifier of the volume; without it, it follows from the content and the options.
    #[arg(long)]
    uuid: Option<Uuid>,
}

const EXAMPLES: &str = "\
Examples:
  undercroft build rootfs/ root.img
  undercroft build --size 3G --label root --preset lts-6.1 rootfs.tar.zst root.img
  undercroft build --owner 0:0 --mtime @0 --exclude .git . source.img
  undercroft build --add motd:/etc/motd --chmod 600 '/etc/ssh/*_key' rootfs/ root.img
  undercroft build --selinux rootfs/etc/selinux/targeted --free 20% rootfs/ root.img
  undercroft build --rules image.rules --grow-on-boot 100G rootfs.tar.zst root.img
  docker export app | undercroft build --size min - app.img

Rules change the tree on its way, in this order: --exclude and --include choose (the last that
matches counts), --add, --mkdir and --symlink add, the others change attributes, one after the other
as they are written. A file with several names goes by the first of them. In a file for --rules each
line is an option without its dashes:

  # owners of a rootless container
  owner-map 100000:0:65536
  exclude /usr/share/doc
  include copyright
  add motd:/etc/motd
  chown 33:33 /srv/www/**
  chmod u=rw,go= '/etc/ssh/*_key'
  selinux /etc/selinux/default";

fn size_choice(text: &str) -> Result<SizeChoice, String> {
    match text {
        "auto" => Ok(SizeChoice::Auto),
        "min" => Ok(SizeChoice::Minimum),
        _ => value::size(text)
            .map(SizeChoice::Exact)
            .map_err(|error| format!("{error}; or write auto or min")),
    }
}

fn free(text: &str) -> Result<Free, String> {
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.parse().ok().filter(|percent| *percent < 100);
            percent.map(Free::Percent).ok_or_else(|| "a share is 0% to 99%".to_owned())
        }
        None => value::size(text)
            .map(Free::Bytes)
            .map_err(|error| format!("{error}; or write a share of the volume, such as 20%")),
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let options = options(args)?;
    let start = Instant::now();
    let bar = Progress::new();
    let built = pack::build(&options, &mut |progress| {
        bar.show(progress.entries, progress.bytes, progress.bytes_total);
    });
    drop(bar);
    let summary = built?;
    warn(&summary);
    let seconds = start.elapsed().as_secs_f64();
    if args.json {
        let report = Report::new(&summary, seconds);
        report::json_line(out, &report)?;
    } else {
        print(&summary, seconds, args, out)?;
    }
    args.stats.print(&summary.devices, args.json, out)?;
    Ok(Outcome::Done)
}

fn options(args: &Args) -> Result<PackOptions> {
    let content = &args.content;
    let (exclude, rules) = content.rules.rules(content.source_date_epoch)?;
    let source_options = Options {
        exclude,
        rules: Arc::new(rules),
        strip_absolute: content.strip_absolute,
        strict: content.strict,
        threads: args.threads,
        ..Options::default()
    };
    let mut volume = args.format.options(0, Uuid::nil())?;
    if let Some(size) = args.grow_on_boot {
        volume.log_size = Some(mkfs::usual_log_size(&volume, size)?);
    }
    Ok(PackOptions {
        source_options,
        force: args.force,
        durable: args.sync,
        size: args.free.map_or(args.size, SizeChoice::Free),
        volume,
        uuid: content.uuid,
        epoch: content.source_date_epoch,
        ..PackOptions::new(SourceSpec::from(args.source.clone()), args.image.clone())
    })
}

/// The summary as JSON.
#[derive(Serialize)]
struct Report {
    files: u64,
    directories: u64,
    symlinks: u64,
    specials: u64,
    hard_links: u64,
    bytes: u64,
    clamped_times: u64,
    archive_without_end: bool,
    attributes_left_out: u64,
    rule_warnings: Vec<String>,
    image_bytes: u64,
    free_bytes: u64,
    reserved_bytes: u64,
    available_bytes: u64,
    seconds: f64,
    bios: u64,
    requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_rss_bytes: Option<u64>,
}

impl Report {
    fn new(summary: &Summary, seconds: f64) -> Self {
        Self {
            files: summary.files,
            directories: summary.directories,
            symlinks: summary.symlinks,
            specials: summary.specials,
            hard_links: summary.hard_links,
            bytes: summary.bytes,
            clamped_times: summary.clamped_times,
            archive_without_end: summary.warnings.no_end,
            attributes_left_out: summary.warnings.foreign_attributes,
            rule_warnings: summary.warnings.rules.clone(),
            image_bytes: summary.image_bytes,
            free_bytes: summary.free_bytes,
            reserved_bytes: summary.reserved_bytes,
            available_bytes: summary.available_bytes,
            seconds,
            bios: summary.devices.first().map_or(0, |device| device.statistics.bios),
            requests: summary.devices.first().map_or(0, |device| device.statistics.requests),
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

/// Most memory the process had, where the system tells.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn print(summary: &Summary, seconds: f64, args: &Args, out: &mut dyn Write) -> Result<()> {
    let others = summary.symlinks + summary.specials + summary.hard_links;
    writeln!(
        out,
        "{}: {} with {} free, holding {} files, {} directories, {others} others, {} of data; \
         {seconds:.2} s",
        args.image,
        text::bytes(summary.image_bytes),
        text::bytes(summary.free_bytes),
        summary.files,
        summary.directories,
        text::bytes(summary.bytes),
    )?;
    if summary.clamped_times > 0 {
        eprintln!(
            "note: {} entries had times that the volume cannot hold; they got the nearest it can",
            summary.clamped_times
        );
    }
    Ok(())
}

/// Prints the warnings about the archive and the rules.
fn warn(summary: &Summary) {
    let warnings = &summary.warnings;
    if warnings.no_end {
        eprintln!(
            "warning: the archive has no blocks of zeros at its end; more may have followed, compare \
             it with its origin (--strict refuses such archives)"
        );
    }
    if let Some(first) = &warnings.first_foreign {
        eprintln!(
            "warning: {} extended attributes in no namespace of Linux were left out, the first is \
             {first} (--strict refuses them)",
            warnings.foreign_attributes
        );
    }
    for warning in &warnings.rules {
        eprintln!("warning: {warning} (--strict refuses that)");
    }
}
