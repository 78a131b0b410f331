//! `undercroft diff`.

mod line;

use crate::failure::Usage;
use crate::image::{Part, PartitionChoice};
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::{text, tree, value};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::ControlFlow;
use undercroft_image::diff::{Aspect, DiffError, DiffOptions, Difference, Event, Summary, diff};
use undercroft_source::oci::{ImageOptions, Platform};
use undercroft_source::{Exclude, Options, SourceOptions};

/// Exit status when the trees could not be compared, as that of diff(1).
pub(super) const TROUBLE: u8 = 2;

/// Compare two trees: volumes, directories, tar archives, container images, each with any other.
///
/// Compared are names and kinds, permission bits, owners, modification times to the nanosecond,
/// sizes, contents byte by byte, targets of symbolic links, device numbers, extended attributes with
/// access lists, and which names are one file. Each difference is one line, sorted by path. Of a
/// directory that only one tree has, the contents are counted, but not told.
///
/// Holes read as zeros; where they are does not count without --holes, since not everything that
/// holds files says so alike. Hard links are compared by the names that both trees have. A journal
/// that was not replayed is replayed in memory; nothing is ever changed.
///
/// Exit status: 0 the trees are the same, 1 they differ, 2 they could not be compared.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The first tree: an image or a block device with a volume, a device stacked on several, a
    /// directory, a tar file (plain, gzip, zstd, xz), or - for a tar stream on standard input;
    /// oci:DIR, oci-archive:FILE or docker-archive:FILE for a container image; dir:DIR or tar:FILE
    /// for a directory or a tar file, whatever is in it.
    #[arg(value_name = "A")]
    left: OsString,

    /// The second tree, likewise.
    #[arg(value_name = "B")]
    right: OsString,

    /// The volume is this partition of a disk, by number, name or label; two, 1,2, if those of A and
    /// B differ.
    #[arg(long, value_name = "N|NAME[,N|NAME]", value_delimiter = ',')]
    partition: Vec<PartitionChoice>,

    /// The volume is this logical volume of LVM, such as vg/root; two, vg/root,vg/old, if those of A and B
    /// differ.
    #[arg(long, value_name = "GROUP/VOLUME[,GROUP/VOLUME]", value_delimiter = ',', value_parser = value::logical_volume)]
    lv: Vec<String>,

    /// Of a container image with several, the one for this platform; two, linux/amd64,linux/arm64,
    /// if those of A and B differ. By default that of this machine.
    #[arg(long, value_name = "PLATFORM[,PLATFORM]", value_delimiter = ',')]
    platform: Vec<Platform>,

    /// Leave out differences of these sorts, separated by commas.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    ignore: Vec<Ignored>,

    /// Tell where files have holes and where they have data, too.
    #[arg(long)]
    holes: bool,

    /// Leave out what matches: a name at any depth (*.o), or with a slash a path from the root
    /// (/build, src/**/*.o). Repeat for more.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// One line for each path: what differs, without the values.
    #[arg(long)]
    brief: bool,

    /// Print nothing, and end at the first difference.
    #[arg(long, short, conflicts_with_all = ["brief", "json"])]
    quiet: bool,

    /// Print one JSON object a line: the differences, then the summary.
    #[arg(long)]
    json: bool,
}

/// What can be left out.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ignored {
    Mode,
    Owner,
    Mtime,
    Size,
    Content,
    Target,
    Device,
    Xattrs,
    Links,
}

impl Ignored {
    fn aspect(self) -> Aspect {
        match self {
            Self::Mode => Aspect::Mode,
            Self::Owner => Aspect::Owner,
            Self::Mtime => Aspect::Mtime,
            Self::Size => Aspect::Size,
            Self::Content => Aspect::Content,
            Self::Target => Aspect::Target,
            Self::Device => Aspect::Device,
            Self::Xattrs => Aspect::Xattrs,
            Self::Links => Aspect::Links,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  undercroft diff old.img new.img
  undercroft diff rootfs/ root.img                     is the image what it was made from?
  undercroft diff --ignore mtime,owner rootfs/ layer.tar.gz
  undercroft diff --ignore mtime --partition 2 disk.img docker-archive:saved-amd64.tar
  undercroft diff --platform linux/arm64 --ignore mtime rootfs/ oci-archive:all.tar
  undercroft diff --brief --exclude /var/cache a.img b.img
  undercroft diff -q a.img b.img || echo they differ
  docker export app | undercroft diff --ignore mtime - app.img

Times of many archives are whole seconds: --ignore mtime leaves them out.

Lines look like this:
  /etc/hosts: size 120 -> 131
  /etc/hosts: content from byte 120
  /etc/motd: only in old.img (regular file)
  /usr/bin/mount: mode 4755 -> 755";

/// The summary as JSON.
#[derive(Serialize)]
struct Report {
    same: bool,
    common: u64,
    changed: u64,
    only_left: u64,
    only_right: u64,
    bytes: u64,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (left, right) = (name(&args.left), name(&args.right));
    if args.left == "-" && args.right == "-" {
        return Err(Usage("only one of the trees can be standard input".into()).into());
    }
    let partitions = for_each(&args.partition)
        .ok_or_else(|| Usage("--partition takes one number, or two".into()))?;
    let volumes =
        for_each(&args.lv).ok_or_else(|| Usage("--lv takes one volume, or two".into()))?;
    let platforms = for_each(&args.platform)
        .ok_or_else(|| Usage("--platform takes one platform, or two".into()))?;
    let exclude = Exclude::new(&args.exclude)?;
    let open = |operand, part: Part, platform: Option<&Platform>| {
        let reading = Options { sorted: true, exclude: exclude.clone(), ..Options::default() };
        let image = ImageOptions { platform: platform.cloned(), ..ImageOptions::default() };
        let options = SourceOptions { image, ..reading.into() };
        tree::open(operand, part, &options)
    };
    let part =
        |partition, volume: Option<&String>| Part::of(None, partition, volume.map(String::as_str));
    let mut one = open(&args.left, part(partitions.0, volumes.0), platforms.0)?;
    let mut other = open(&args.right, part(partitions.1, volumes.1), platforms.1)?;
    let mut options = DiffOptions::default().excluding(exclude);
    if args.holes {
        options = options.with(Aspect::Holes);
    }
    for ignored in &args.ignore {
        options = options.without(ignored.aspect());
    }
    let bar = Progress::new();
    let (mut differs, mut written) = (false, Ok(()));
    let compared = diff(one.as_mut(), other.as_mut(), &options, &mut |event| {
        match event {
            Event::Progress(done) => bar.show(done.common, done.bytes, None),
            Event::Difference(difference) => {
                differs = true;
                written = print(args, (&left, &right), difference, out);
            }
        }
        let is_over = written.is_err() || args.quiet && differs;
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(bar);
    let summary = match compared {
        Err(DiffError::Left(error)) => Err(error).context(format!("cannot read {left}")),
        Err(DiffError::Right(error)) => Err(error).context(format!("cannot read {right}")),
        other => Ok(other?),
    }?;
    let outcome = if differs { Outcome::Findings } else { Outcome::Done };
    let summarize =
        |()| if args.quiet { Ok(()) } else { print_summary(args, &left, &right, &summary, out) };
    match written.and_then(summarize) {
        // A reader of the first lines alone gets the verdict, too.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(outcome),
        written => Ok(written.map(|()| outcome)?),
    }
}

/// What an option says of each of the trees: one value for both, or one for each.
fn for_each<T>(values: &[T]) -> Option<(Option<&T>, Option<&T>)> {
    (values.len() <= 2).then(|| (values.first(), values.last()))
}

/// The name of a tree in messages.
fn name(operand: &OsString) -> String {
    if operand == "-" {
        "standard input".to_owned()
    } else {
        text::name(operand.as_encoded_bytes())
    }
}

fn print(
    args: &Args,
    names: (&str, &str),
    difference: &Difference,
    out: &mut dyn Write,
) -> io::Result<()> {
    match () {
        () if args.quiet => Ok(()),
        () if args.json => line::json(difference, out),
        () if args.brief => line::brief(difference, names, out),
        () => line::lines(difference, names, out),
    }
}

fn print_summary(
    args: &Args,
    left: &str,
    right: &str,
    summary: &Summary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Summary { common, changed, only_left, only_right, bytes, .. } = *summary;
    if args.json {
        let same = summary.is_same();
        let report = Report { same, common, changed, only_left, only_right, bytes };
        return report::json_line(out, &report);
    }
    let read = text::bytes(bytes);
    if summary.is_same() {
        return writeln!(out, "the same: {common} names, {read} compared");
    }
    writeln!(
        out,
        "different: {changed} of {common} names changed, {only_left} only in {left}, {only_right} only \
         in {right}; {read} compared"
    )
}
