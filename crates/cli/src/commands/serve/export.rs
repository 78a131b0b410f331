//! Exports: devices, their names, and what is known of their ranges.

use super::Args;
use super::allocation::FileAllocation;
use super::free_space::FreeSpace;
use super::odd_end::OddEnd;
use crate::failure::Usage;
use crate::image::{ImageArgs, Part};
use anyhow::{Context, Result, anyhow};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::stack::{Description, DiskFormat, Overlay};
use undercroft_block::{BlockDevice, Engine, FileDevice, FileOptions, SECTOR_SIZE};
use undercroft_nbd::server::Export;

/// What is served.
#[derive(Default)]
pub(super) struct Exports {
    /// The exports, with their names.
    pub(super) all: Vec<(String, Export)>,
    /// Files that are served for change and end within a sector.
    pub(super) odd_ends: Vec<OddEnd>,
}

/// The exports.
pub(super) fn all(args: &Args) -> Result<Exports> {
    let part = Part::of(args.offset, args.partition.as_ref(), args.lv.as_deref()).exactly();
    if args.devices.len() > 1 && part != Part::whole() {
        let what = "--partition, --lv and --offset go with one DEVICE";
        return Err(Usage(what.into()).into());
    }
    if args.names.len() > args.devices.len() {
        return Err(Usage("there are more names (--name) than devices".into()).into());
    }
    let mut exports = Exports::default();
    for (index, device) in args.devices.iter().enumerate() {
        let name = args.names.get(index).cloned().unwrap_or_else(|| name_of(device));
        if exports.all.iter().any(|(other, _)| *other == name) {
            let what = format!("two exports of the name {name:?}: choose others with --name");
            return Err(Usage(what).into());
        }
        let file = plain_file(args, device);
        let odd_end = file.filter(|_| part == Part::whole()).and_then(OddEnd::of);
        let mut export = one(args, device, file, &part, &name)?;
        if let Some(odd_end) = odd_end {
            export = export.length(odd_end.bytes);
            if !keeps_devices(args) {
                exports.odd_ends.push(odd_end);
            }
        }
        let export = if args.shared { export.shared() } else { export };
        exports.all.push((name, export));
    }
    Ok(exports)
}

/// The file whose bytes are served. Of a disk in a format of its own the holes and the length are others than
/// those of the file.
fn plain_file<'d>(args: &Args, device: &'d Description) -> Option<&'d Path> {
    let is_raw = args.format.disk_format() == DiskFormat::Raw;
    device.as_path().filter(|path| is_raw || undercroft_container::format_of(path).is_none())
}

/// Whether devices stay as they are.
fn keeps_devices(args: &Args) -> bool {
    args.read_only || args.overlay.is_some()
}

/// The name of the file, or the description of a stack.
fn name_of(device: &Description) -> String {
    let file = device.as_path().and_then(Path::file_name).and_then(OsStr::to_str);
    file.map_or_else(|| device.to_string(), str::to_owned)
}

fn one(
    args: &Args,
    description: &Description,
    file: Option<&Path>,
    part: &Part,
    name: &str,
) -> Result<Export> {
    let image = ImageArgs::part_of(description.clone(), part.clone()).with_engine(Engine::Around);
    let image = image.with_format(args.format.clone());
    let device = if keeps_devices(args) { image.device()? } else { image.writable_device()? };
    if args.format.disk_format() != DiskFormat::Raw {
        let raw = "--format raw serves its bytes as they are";
        image.expect_raw(device.as_ref()).map_err(|error| anyhow!("{error:#}; {raw}"))?;
    }
    let start = image.first_byte();
    let words = description.to_string();
    if let Some(directory) = &args.overlay {
        let export = match directory {
            None => Export::new(name, Arc::new(Overlay::new(device))).fast_zeroes(),
            Some(directory) => Export::new(name, Arc::new(overlay_in(directory, device)?)),
        };
        return Ok(export.description(&words));
    }
    let mut export = Export::new(name, Arc::clone(&device)).description(&words);
    if let Some((path, start)) = file.zip(start) {
        let file = FileAllocation::open(path, start)
            .with_context(|| format!("cannot open {} to see its holes", path.display()))?;
        export = export.context(Arc::new(file));
    }
    if args.read_only {
        export = export.read_only();
        // Other contents than a sound volume have no free space to tell of.
        if let Some(free) = FreeSpace::of_volume(device) {
            export = export.context(Arc::new(free));
        }
    }
    Ok(export)
}

/// An overlay whose changes are in a file of a directory; it has no name, so it goes with the server,
/// however that ends.
fn overlay_in(directory: &Path, device: Arc<dyn BlockDevice>) -> Result<Overlay> {
    let made = tempfile::tempfile_in(directory)
        .and_then(|file| file.set_len(device.capacity().0 * SECTOR_SIZE).map(|()| file));
    let file =
        made.with_context(|| format!("cannot make a file for changes in {}", directory.display()))?;
    let name = format!("a file in {}", directory.display());
    let changes = FileDevice::from_file(file, &name, &FileOptions::default())?;
    Ok(Overlay::with_changes(device, Arc::new(changes))?)
}
