//! `undercroft publish`.

use super::{StoreArgs, open};
use crate::failure::Usage;
use crate::image::{FormatArgs, ImageArgs};
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::text;
use crate::value;
use anyhow::{Result, bail};
use clap::ValueHint;
use serde::Serialize;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::stack::Description;
use undercroft_block::{BlockDevice, SECTOR_SIZE};
use undercroft_container::layers::{Choice, Depth, Layers, Place};
use undercroft_container::luks::Keys;
use undercroft_store::{PublishOptions, Published, Reference};
use undercroft_xfs::Volume;
use undercroft_xfs::frag::for_each_free;
use undercroft_xfs::recovery::LogState;

/// Publish a disk in an object store, in chunks that are stored once, for many hosts to read.
///
/// Chunks of 4 MiB are stored by their content, compressed, below a prefix. What is there already is not
/// sent again, also that of other images; what is zeroes and what XFS volumes have free is left out. A manifest names
/// the chunks, and a name the manifest. Whatever ends this early leaves what was published before as it
/// was.
///
/// Then `s3://bucket/images@v1` is an image for every command that reads one, and so is
/// `s3://bucket/images@sha256:DIGEST`, which never is another one. An old image of the same name stays until
/// `prune --unnamed`. Of two that publish the same name at a time, one is told that it lost.
///
/// Credentials come from the variables of the stores' own tools: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
/// AWS_REGION, AWS_ENDPOINT_URL; GOOGLE_APPLICATION_CREDENTIALS; AZURE_STORAGE_ACCOUNT_NAME and _KEY.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// The disk: an image file, a block device, a network disk, or a device stacked on several.
    #[arg(value_name = "IMAGE", value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    image: Description,

    /// Where to: s3://BUCKET/PREFIX@NAME, gs://, az://, or a directory, DIR@NAME; without @NAME the image
    /// is known by its digest alone.
    #[arg(value_name = "STORE[@NAME]")]
    target: String,

    /// Publish free space, too: what removed files had can be found in it.
    #[arg(long)]
    keep_free: bool,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    format: FormatArgs,
}

const EXAMPLES: &str = "\
Examples:
  undercroft publish root.img s3://bucket/images@v1
  undercroft publish root.img store@v1 && undercroft ls -l file://$PWD/store@v1 /etc";

#[derive(Serialize)]
struct Report {
    digest: String,
    bytes: u64,
    chunks: u64,
    new_chunks: u64,
}

pub(in super::super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (repository, reference) = open(&args.target)?;
    let name = match reference {
        None => None,
        Some(Reference::Name(name)) => Some(name),
        Some(Reference::Pinned(_)) => {
            return Err(Usage("a digest follows from what is published; give a name".into()).into());
        }
    };
    let image = ImageArgs::disk_of(args.image.clone()).with_format(args.format.clone());
    let disk = image.device()?;
    if disk.capacity().0 == 0 {
        bail!("{} has no bytes of its own; name one of the disks", args.image);
    }
    let free = if args.keep_free { Vec::new() } else { free_space(&disk) };
    let bar = Progress::new();
    let all = disk.capacity().to_bytes().unwrap_or(u64::MAX);
    let options = PublishOptions { name, free };
    let done = undercroft_store::publish(&repository, &*disk, &options, &mut |done| {
        bar.show_bytes(done, all);
    });
    drop(bar);
    let Published { digest, bytes, chunks, new_chunks } = done?;
    if args.store.json {
        let digest = digest.to_string();
        report::json_line(out, &Report { digest, bytes, chunks, new_chunks })?;
    } else {
        let bytes = text::bytes(bytes);
        writeln!(
            out,
            "{}: {bytes}, {chunks} chunks, {new_chunks} of them new\nsha256:{digest}",
            args.target
        )?;
    }
    args.store.print_stats(out)?;
    Ok(Outcome::Done)
}

/// The free space of all volumes that are in one piece in a disk, in bytes, ascending. A volume that does not
/// tell what is free is published as it is.
fn free_space(disk: &Arc<dyn BlockDevice>) -> Vec<Range<u64>> {
    // What is in a container of LUKS is nowhere in the disk as it is.
    let keys = Keys::default();
    let Ok(layers) = Layers::look(disk, &Choice::default(), Depth::Everything, &keys) else {
        return Vec::new();
    };
    let mut free = Vec::new();
    for (number, node) in layers.nodes().iter().enumerate() {
        let start = first_byte(&layers, number);
        if let (true, Some(start), Ok(device)) = (node.is_volume(), start, &node.device) {
            free.extend(free_of(device, start).unwrap_or_default());
        }
    }
    free.sort_unstable_by_key(|range| range.start);
    free
}

/// Where a device begins in the disk, if it is all of that or a partition of it.
fn first_byte(layers: &Layers, number: usize) -> Option<u64> {
    let node = &layers.nodes()[number];
    match (&node.place, node.parent) {
        (Place::Whole, None) => Some(0),
        (Place::Partition(partition), Some(parent)) => {
            first_byte(layers, parent)?.checked_add(partition.start.to_bytes()?)
        }
        _ => None,
    }
}

/// The free space of a volume; none of one whose journal says what is free.
fn free_of(device: &Arc<dyn BlockDevice>, first: u64) -> Option<Vec<Range<u64>>> {
    let volume = Volume::open_unreplayed(Arc::clone(device)).ok()?;
    if !matches!(volume.log_state(), Ok(LogState::Clean)) {
        return None;
    }
    let mut free = Vec::new();
    for_each_free(&volume, |sector, sectors| {
        let start = first + sector.0 * SECTOR_SIZE;
        free.push(start..start + sectors * SECTOR_SIZE);
    })
    .ok()?;
    Some(free)
}
