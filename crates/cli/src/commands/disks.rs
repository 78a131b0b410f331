//! `undercroft disks`.

use crate::image::contents::{self, Held};
use crate::image::{FormatArgs, ImageArgs, Part};
use crate::report::{self, Outcome};
use crate::text;
use crate::value;
use anyhow::Result;
use clap::ValueHint;
use serde::Serialize;
use std::io::Write;
use undercroft_block::partition::{PartitionTable, Scheme};
use undercroft_block::stack::{Description, DiskFormat};
use undercroft_source::Foreign;

/// Show what is in disk images: their format, partitions, file systems with labels and UUIDs.
///
/// As lsblk -f does it for disks. An image is recognised by its content, whatever its name says.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Image files, block devices, network disks, or devices stacked on several.
    #[arg(value_name = "IMAGE", required = true, value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    images: Vec<Description>,

    #[command(flatten)]
    format: FormatArgs,

    /// Print JSON, a line for each image.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft disks root.img
  undercroft disks --json root.img";

/// An image.
#[derive(Serialize)]
struct Disk {
    name: String,
    /// How the file holds the disk.
    format: &'static str,
    bytes: u64,
    #[serde(flatten)]
    contents: Contents,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'static str>,
    partitions: Vec<Portion>,
}

/// A partition.
#[derive(Serialize)]
struct Portion {
    number: u32,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    first_byte: u64,
    bytes: u64,
    is_on_disk: bool,
    #[serde(flatten)]
    contents: Contents,
}

/// What begins at a place, if that is known.
#[derive(Default, Serialize)]
struct Contents {
    contents: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    for (index, image) in args.images.iter().enumerate() {
        let disk = look(image, &args.format)?;
        if args.json {
            report::json_line(out, &disk)?;
        } else {
            if index > 0 {
                writeln!(out)?;
            }
            print(&disk, out)?;
        }
    }
    Ok(Outcome::Done)
}

fn look(image: &Description, format: &FormatArgs) -> Result<Disk> {
    let opened = ImageArgs::part_of(image.clone(), Part::Whole).with_format(format.clone());
    let disk = opened.device()?;
    let is_raw = format.disk_format() == DiskFormat::Raw;
    let path = image.as_path().filter(|_| !is_raw);
    let table = PartitionTable::read(&*disk).ok().filter(|table| !table.partitions.is_empty());
    let partitions = table.iter().flat_map(|table| contents::held(&disk, table));
    Ok(Disk {
        name: image.to_string(),
        format: path.and_then(undercroft_container::format_of).unwrap_or("raw"),
        bytes: disk.capacity().to_bytes().unwrap_or(u64::MAX),
        contents: Contents::new(contents::of(&*disk)),
        table: table.as_ref().map(|table| match table.scheme {
            Scheme::Gpt => "gpt",
            Scheme::Mbr => "mbr",
        }),
        partitions: partitions.map(Portion::new).collect(),
    })
}

impl Contents {
    fn new(found: Option<Foreign>) -> Self {
        let Some(Foreign { name, label, uuid, .. }) = found else { return Self::default() };
        let label = label.map(|label| String::from_utf8_lossy(&label).into_owned());
        Self { contents: Some(name), label, uuid }
    }
}

impl Portion {
    fn new(held: Held<'_>) -> Self {
        let Held { partition, contents, is_on_disk } = held;
        let bytes = |sectors: undercroft_block::Sector| sectors.to_bytes().unwrap_or(u64::MAX);
        Self {
            number: partition.number,
            kind: partition.kind.to_string(),
            name: partition.name.clone(),
            first_byte: bytes(partition.start),
            bytes: bytes(partition.length),
            is_on_disk,
            contents: Contents::new(contents),
        }
    }
}

/// A table as lsblk prints one.
fn print(disk: &Disk, out: &mut dyn Write) -> Result<()> {
    let title = ["NAME", "SIZE", "TYPE", "CONTENTS", "LABEL", "UUID"].map(str::to_owned);
    let mut rows = vec![title];
    let (name, size) = (text::visible(&disk.name), text::short_bytes(disk.bytes));
    let [contents, label, uuid] = words(&disk.contents, true);
    rows.push([name, size, disk.format.to_owned(), contents, label, uuid]);
    for (index, partition) in disk.partitions.iter().enumerate() {
        let branch = if index + 1 == disk.partitions.len() {
            "\u{2514}\u{2500}"
        } else {
            "\u{251c}\u{2500}"
        };
        let name = match partition.name.as_str() {
            "" => format!("{branch}{}", partition.number),
            name => format!("{branch}{} \"{}\"", partition.number, text::visible(name)),
        };
        let [contents, label, uuid] = words(&partition.contents, partition.is_on_disk);
        let size = text::short_bytes(partition.bytes);
        rows.push([name, size, partition.kind.clone(), contents, label, uuid]);
    }
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            // Sizes end below each other.
            if column == 1 { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Contents, label and UUID as they stand in the table.
fn words(contents: &Contents, is_on_disk: bool) -> [String; 3] {
    let found = match contents.contents {
        Some(name) => name.trim_start_matches("a ").trim_start_matches("an ").to_owned(),
        None if is_on_disk => "unknown".to_owned(),
        None => "behind the end of the disk".to_owned(),
    };
    let shown = |text: &Option<String>| text.as_deref().map(text::visible).unwrap_or_default();
    [found, shown(&contents.label), shown(&contents.uuid)]
}
