//! `undercroft build`.

mod disk_report;
mod of_found;
mod on;
mod report;
mod rule_options;

use super::warnings::warn;
use crate::disk_options::DiskArgs;
use crate::format_options::FormatArgs;
use crate::output_file;
use crate::progress::Progress;
use crate::report::{Outcome, json_line, note, warning};
use crate::stats::StatsArgs;
use crate::{text, value};
use anyhow::{Result, bail};
use clap::{Arg, ValueHint};
pub(super) use of_found::build_found;
use report::Report;
use rule_options::RuleArgs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use undercroft_block::stack::Description;
use undercroft_image::pack::{self, Free, OldKernel, PackOptions, SizeChoice, Summary};
use undercroft_source::oci::{ImageOptions, ImageReport, Platform};
use undercroft_source::{DescriptionOptions, Options, SourceOptions, SourceSpec};
use undercroft_xfs::mkfs;
use uuid::Uuid;

/// Build a volume from a directory, a tar archive, a container image or a description.
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
/// A container image is one of this machine; nothing is fetched, which skopeo does well. Its layers
/// make what overlayfs shows over them: whiteouts, opaque directories and hard links across layers
/// count, and what they hide is never written. All digests are compared. A directory or a tar file
/// that is an image is taken as one, with a note; dir: and tar: take it as it is.
///
/// A description names files and their attributes: mtree(5) as bsdtar and mtree write it,
/// composefs-dump(5), or a prototype file of mkfs.xfs -p. Contents come from a directory, --contents,
/// in which symbolic links are not followed; what a line of mtree does not say is that of the file
/// there. Sizes and digests in a description are compared. mtree files have no extended attributes;
/// prototype files have no times, and the extended attributes of the files that they name.
///
/// With --on a layer is put on a volume that exists, through its journal, and whiteouts take away
/// what they name. A layer that cannot be read, or does not fit the volume, changes nothing.
///
/// The image appears under its name when it is whole, and not before.
#[derive(clap::Args)]
#[command(mut_args(only_in_long_help), after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// A directory, a tar file (plain, gzip, zstd, xz), or - for a tar stream on standard input;
    /// oci:DIR or oci:DIR:TAG for a container image, likewise oci-archive:FILE and
    /// docker-archive:FILE; mtree:FILE, composefs:FILE or proto:FILE for a description of a tree;
    /// dir:DIR or tar:FILE for a directory or tar file, whatever is in it; salvage:IMAGE for what can be
    /// read of a damaged volume.
    source: PathBuf,

    /// The image file to make, or a block device; or a device stacked on several, such as
    /// 'stripe:64k(a.img,b.img)' or @stack.toml, whose files are made.
    #[arg(value_parser = value::image(), value_hint = ValueHint::AnyPath,
        required_unless_present = "on")]
    image: Option<Description>,

    /// Put the source, which is the tar archive of a layer, on this volume, which exists.
    #[arg(long, value_name = "BASE", value_parser = value::image(),
        value_hint = ValueHint::AnyPath, conflicts_with_all = [
            "image", "size", "force", "threads", "verify", "FormatArgs", "RuleArgs", "uuid",
            "free", "grow_on_boot", "ContainerArgs", "DescribedArgs", "DiskArgs", "StatsArgs",
        ])]
    on: Option<Description>,

    /// Size of the volume: bytes (suffixes K, M, G, T), auto (the content and a tenth of it free,
    /// at least 16 MiB) or min (as small as the content allows).
    #[arg(long, value_name = "SIZE", value_parser = size_choice, default_value = "auto")]
    size: SizeChoice,

    /// Space to leave free for files, in place of a tenth: a share of the volume (20%), or bytes
    /// (500M).
    #[arg(long, value_name = "SHARE|BYTES", value_parser = free, conflicts_with = "size")]
    free: Option<Free>,

    /// The volume will be grown to this size once it is in use, with xfs_growfs or
    /// systemd-growfs. Its journal and its allocation groups are as long as those of a volume of
    /// that size, so it has few of them then. A small one is a single group until it has grown,
    /// which xfs_repair looks at with -o force_geometry.
    #[arg(long, value_name = "SIZE", value_parser = value::size, conflicts_with = "log_size")]
    grow_on_boot: Option<u64>,

    /// Replace an image that exists, or overwrite what is on a device: the message without this names
    /// it. A target that is mounted is always refused.
    #[arg(long)]
    force: bool,

    /// Read the finished volume back and compare it with the source, as `undercroft diff` does.
    /// Where they differ, which is so if the source was changed meanwhile, there is no image. The
    /// source is read a second time, so it cannot be a stream. A qcow2 is compared before it is
    /// written in that format.
    #[arg(long)]
    verify: bool,

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
    container: ContainerArgs,

    #[command(flatten)]
    described: DescribedArgs,

    #[command(flatten)]
    disk: DiskArgs,

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

    /// Refuse what would be taken with a warning, such as archives that may not be whole; and rules
    /// that match nothing, --exclude and --include among them.
    #[arg(long)]
    strict: bool,

    /// Identifier of the volume; without it, it follows from the content and the options.
    #[arg(long)]
    uuid: Option<Uuid>,
}

/// Options for container images.
#[derive(clap::Args)]
#[command(next_help_heading = "Container images")]
struct ContainerArgs {
    /// Which image, where there are several: linux/amd64, linux/arm/v7. By default that of this
    /// machine.
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    platform: Option<Platform>,

    /// Write the config of the image, with entry point and environment, to a file beside.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config_to: Option<PathBuf>,

    /// Keep the labels of the config as attributes of the root directory, as user.NAME.
    #[arg(long)]
    image_labels: bool,
}

/// Options for descriptions.
#[derive(clap::Args)]
#[command(next_help_heading = "Descriptions")]
struct DescribedArgs {
    /// The directory that has the contents of files: all paths are below it. Prototype files without
    /// it name files of this machine.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    contents: Option<PathBuf>,

    /// Take slashes in the names of a prototype file for spaces, which it cannot have.
    #[arg(long)]
    slashes_are_spaces: bool,
}

/// The options of groups are in the long help.
fn only_in_long_help(option: Arg) -> Arg {
    let is_of_group = option.get_help_heading().is_some();
    if is_of_group { option.hide_short_help(true) } else { option }
}

const SHORT_EXAMPLES: &str = "\
Examples:
  undercroft build rootfs/ root.img
  undercroft build --owner 0:0 --exclude .git --add motd:/etc/motd . root.img
  undercroft build --disk gpt --partition esp:efi/ --partition root:xfs rootfs/ pc.img

More with --help:
  Content           --rules, --exclude, --add, --chmod, --owner, --selinux, --mtime ...
  Container images  --platform, --config-to, --image-labels
  Descriptions      --contents, --slashes-are-spaces
  Disk and its file --disk, --partition, --disk-size, --format, --reflink
  Format            --label, --preset, --feature, --block-size, --log-size ...";

const EXAMPLES: &str = "\
Examples:
  undercroft build rootfs/ root.img
  undercroft build --size 3G --label root --preset lts-6.1 rootfs.tar.zst root.img
  undercroft build --owner 0:0 --mtime @0 --exclude .git . source.img
  undercroft build --add motd:/etc/motd --chmod 600 '/etc/ssh/*_key' rootfs/ root.img
  undercroft build --selinux rootfs/etc/selinux/targeted --free 20% rootfs/ root.img
  undercroft build --verify rootfs/ root.img
  undercroft build --rules image.rules --grow-on-boot 100G rootfs.tar.zst root.img
  docker export app | undercroft build --size min - app.img
  undercroft build --disk gpt --partition esp:efi/ --partition root:xfs rootfs/ pc.img
  undercroft build --disk gpt --disk-size 10G --format qcow2 rootfs/ vm.qcow2
  skopeo copy docker://debian:12 oci:debian:12
  undercroft build --config-to debian.json oci:debian:12 debian.img
  docker save app | undercroft build docker-archive:- app.img
  undercroft build --platform linux/arm64 oci-archive:all.tar arm.img
  undercroft build layer.tar.gz --on base.img
  undercroft build --contents rootfs/ mtree:root.mtree root.img
  undercroft build --contents rootfs/ composefs:root.dump root.img

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
    let image = match (&args.on, &args.image) {
        (Some(base), _) => return on::run(args, base, out),
        (None, Some(image)) => image,
        (None, None) => bail!("name the image to make, or a volume that exists with --on"),
    };
    let options = options(args, image)?;
    if let Some(path) = &args.container.config_to {
        output_file::check(path, args.force)?;
    }
    let start = Instant::now();
    let opened = of_found::open(args, &options.source_options)?;
    let summary = show(|progress| match opened {
        Some(opened) => pack::build_from(
            opened,
            &PackOptions { source: SourceSpec::StandardInput, ..options.clone() },
            progress,
        ),
        None => pack::build(&options, progress),
    })?;
    if let Some(image) = &summary.image {
        tell_image(image, args)?;
    }
    print_summary(&summary, start.elapsed().as_secs_f64(), (image, args.json), out)?;
    args.stats.print(&summary.devices, args.json, out)?;
    Ok(Outcome::Done)
}

/// Builds with a bar that shows how far it is.
fn show(
    build: impl FnOnce(&mut dyn FnMut(&pack::Progress)) -> Result<Summary, pack::PackError>,
) -> Result<Summary, pack::PackError> {
    let bar = Progress::new();
    build(&mut |progress| {
        bar.show(progress.entries, progress.bytes, progress.bytes_total);
    })
}

/// Says what was built, with warnings.
fn print_summary(
    summary: &Summary,
    seconds: f64,
    (image, json): (&Description, bool),
    out: &mut dyn Write,
) -> Result<()> {
    warn(&summary.warnings, true);
    if let Some(kernel) = &summary.old_kernel {
        warn_of_kernel(kernel);
    }
    if json {
        return Ok(json_line(out, &Report::new(summary, seconds))?);
    }
    print(summary, seconds, image, out)
}

fn options(args: &Args, image: &Description) -> Result<PackOptions> {
    let (content, container) = (&args.content, &args.container);
    let (exclude, rules) = content.rules.rules(content.source_date_epoch)?;
    let source_options = SourceOptions {
        reading: Options {
            exclude,
            strip_absolute: content.strip_absolute,
            strict: content.strict,
            threads: args.threads,
            ..Options::default()
        },
        rules: Arc::new(rules),
        image: ImageOptions {
            platform: container.platform.clone(),
            labels: container.image_labels,
            required: container.platform.is_some()
                || container.config_to.is_some()
                || container.image_labels,
        },
        description: DescriptionOptions {
            contents: args.described.contents.clone(),
            slashes_are_spaces: args.described.slashes_are_spaces,
        },
    };
    let mut volume = args.format.options(0, Uuid::nil())?;
    if let Some(size) = args.grow_on_boot {
        volume.log_size = Some(mkfs::usual_log_size(&volume, size)?);
        volume.grown_size = Some(size);
    }
    Ok(PackOptions {
        source_options,
        force: args.force,
        verify: args.verify,
        durable: args.sync,
        disk: args.disk.disk()?,
        format: args.disk.format(image)?,
        reflink: args.disk.reflink(),
        size: args.free.map_or(args.size, SizeChoice::Free),
        volume,
        preset_of_kernel: args.format.follows_kernel(),
        uuid: content.uuid,
        epoch: content.source_date_epoch,
        ..PackOptions::new(SourceSpec::from(args.source.clone()), image.clone())
    })
}

fn print(summary: &Summary, seconds: f64, image: &Description, out: &mut dyn Write) -> Result<()> {
    let others = summary.symlinks + summary.specials + summary.hard_links;
    writeln!(
        out,
        "{image}: {} with {} free, holding {} files, {} directories, {others} others, {} of data; \
         {seconds:.2} s",
        text::bytes(summary.image_bytes),
        text::bytes(summary.free_bytes),
        summary.files,
        summary.directories,
        text::bytes(summary.bytes),
    )?;
    if let Some(disk) = &summary.disk {
        disk_report::print(disk, out)?;
    }
    if summary.clamped_times > 0 {
        note(format_args!(
            "{} entries had times that the volume cannot hold; they got the nearest it can",
            summary.clamped_times
        ));
    }
    Ok(())
}

/// Says that a path was taken as a container image, and writes the config of the image.
fn tell_image(image: &ImageReport, args: &Args) -> Result<()> {
    if image.is_recognised {
        note(format_args!(
            "{} is a container image ({}, {} layers) and was built as {}; dir: or tar: before \
             the path takes it as it is",
            args.source.display(),
            image.platform,
            image.layers,
            image.spec,
        ));
    }
    match &args.container.config_to {
        Some(path) => output_file::write(path, &image.config, args.force),
        None => Ok(()),
    }
}

/// Says that the kernel in the tree does not mount the volume, and which it would.
fn warn_of_kernel(kernel: &OldKernel) {
    let OldKernel { release, needed, preset, .. } = kernel;
    let remedy = match preset {
        Some(preset) => format!("--preset lts-{} makes one that it mounts", preset.name()),
        None => "no preset makes one that it mounts".to_owned(),
    };
    warning(format_args!(
        "the newest kernel in lib/modules is {release}, and a volume with these features is \
         mounted by Linux {needed} and later: {remedy}"
    ));
}
