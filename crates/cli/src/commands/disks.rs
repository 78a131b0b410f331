//! `undercroft disks`.

use crate::image::contents::inside;
use crate::image::{FormatArgs, ImageArgs};
use crate::report::{self, Outcome};
use crate::text;
use crate::value;
use anyhow::Result;
use clap::ValueHint;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use undercroft_block::partition::Scheme;
use undercroft_block::stack::{Description, DiskFormat};
use undercroft_container::Snapshot;
use undercroft_container::layers::{Layers, Node, Place};
use undercroft_source::Foreign;

/// Show what is in disk images: their format, partitions, logical volumes, file systems with labels and UUIDs.
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
  undercroft disks --json root.img
  undercroft disks 'lvm(a.img,b.img)'";

/// An image.
#[derive(Serialize)]
struct Disk {
    name: String,
    /// How the file holds the disk.
    format: &'static str,
    bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    snapshots: Vec<Past>,
    #[serde(flatten)]
    contents: Contents,
    #[serde(flatten)]
    inside: Inside,
}

/// The disk as it was.
#[derive(Serialize)]
struct Past {
    id: String,
    name: String,
    bytes: u64,
    /// Seconds since 1970.
    made: u32,
}

/// What is in a device.
#[derive(Serialize)]
struct Inside {
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disks: Vec<Member>,
    /// What is in a LUKS container.
    #[serde(skip_serializing_if = "Option::is_none")]
    decrypted: Option<Box<Member>>,
    partitions: Vec<Portion>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_volumes: Vec<Logical>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arrays: Vec<Array>,
}

/// An array of a Linux RAID.
#[derive(Serialize)]
struct Array {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    level: String,
    bytes: u64,
    #[serde(flatten)]
    contents: Contents,
    #[serde(flatten)]
    inside: Inside,
}

/// One of several disks.
#[derive(Serialize)]
struct Member {
    name: String,
    bytes: u64,
    #[serde(flatten)]
    contents: Contents,
    #[serde(flatten)]
    inside: Inside,
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
    #[serde(flatten)]
    inside: Inside,
}

/// A logical volume of LVM.
#[derive(Serialize)]
struct Logical {
    group: String,
    name: String,
    /// As LVM writes it.
    id: String,
    bytes: u64,
    #[serde(flatten)]
    contents: Contents,
    #[serde(flatten)]
    inside: Inside,
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
        let (name, format) = (image.to_string(), format_of(image, &args.format));
        let layers = look(image, &args.format)?;
        let snapshots = snapshots(image, &args.format)?;
        if args.json {
            report::json_line(out, &Disk::new(name, format, snapshots, &layers))?;
        } else {
            if index > 0 {
                writeln!(out)?;
            }
            print(&name, format, &snapshots, &layers, out)?;
        }
    }
    Ok(Outcome::Done)
}

/// How an image holds the disk.
fn format_of(image: &Description, format: &FormatArgs) -> &'static str {
    container(image, format).and_then(undercroft_container::format_of).unwrap_or("raw")
}

/// The file of an image, if it may have a format of its own.
fn container<'i>(image: &'i Description, format: &FormatArgs) -> Option<&'i Path> {
    image.as_path().filter(|_| format.disk_format() != DiskFormat::Raw)
}

/// The snapshots in an image, unless one of them is looked at.
fn snapshots(image: &Description, format: &FormatArgs) -> Result<Vec<Past>> {
    let path = container(image, format).filter(|_| format.snapshot().is_none());
    let all = path.map_or(Ok(Vec::new()), undercroft_container::snapshots_of)?;
    let past = |Snapshot { id, name, bytes, seconds, .. }| Past { id, name, bytes, made: seconds };
    Ok(all.into_iter().map(past).collect())
}

fn look(image: &Description, format: &FormatArgs) -> Result<Layers> {
    let layers = ImageArgs::disk_of(image.clone()).with_format(format.clone()).layers()?;
    for note in layers.notes() {
        report::note(format_args!("{image}: {note}"));
    }
    Ok(layers)
}

impl Disk {
    fn new(name: String, format: &'static str, snapshots: Vec<Past>, layers: &Layers) -> Self {
        let root = &layers.nodes()[0];
        let (contents, inside) = (Contents::new(root.contents.as_ref()), Inside::of(layers, 0));
        Self { name, format, bytes: root.bytes, snapshots, contents, inside }
    }
}

impl Inside {
    /// What is in a device. Devices are in each other only so deep.
    fn of(layers: &Layers, number: usize) -> Self {
        let node = &layers.nodes()[number];
        let table = node.table.map(|scheme| match scheme {
            Scheme::Gpt => "gpt",
            Scheme::Mbr => "mbr",
        });
        let fault = node.why_not().map(str::to_owned);
        let mut all = Self {
            fault,
            table,
            disks: Vec::new(),
            decrypted: None,
            partitions: Vec::new(),
            logical_volumes: Vec::new(),
            arrays: Vec::new(),
        };
        for number in inside(layers, number) {
            let node = &layers.nodes()[number];
            let (contents, inside) =
                (Contents::new(node.contents.as_ref()), Self::of(layers, number));
            let bytes = node.bytes;
            match &node.place {
                Place::Partition(partition) => all.partitions.push(Portion {
                    number: partition.number,
                    kind: partition.kind.to_string(),
                    name: partition.name.clone(),
                    first_byte: partition.start.to_bytes().unwrap_or(u64::MAX),
                    bytes,
                    is_on_disk: node.device.is_ok(),
                    contents,
                    inside,
                }),
                Place::Logical { group, name, id } => all.logical_volumes.push(Logical {
                    group: group.clone(),
                    name: name.clone(),
                    id: id.clone(),
                    bytes,
                    contents,
                    inside,
                }),
                Place::Array { name, level } => all.arrays.push(Array {
                    name: name.clone(),
                    level: level.clone(),
                    bytes,
                    contents,
                    inside,
                }),
                Place::Decrypted => {
                    let name = name_of(node);
                    all.decrypted = Some(Box::new(Member { name, bytes, contents, inside }));
                }
                Place::Whole => {
                    all.disks.push(Member { name: name_of(node), bytes, contents, inside });
                }
            }
        }
        all
    }
}

fn name_of(node: &Node) -> String {
    node.device.as_ref().map(|device| device.name().to_owned()).unwrap_or_default()
}

impl Contents {
    fn new(found: Option<&Foreign>) -> Self {
        let Some(Foreign { name, label, uuid, .. }) = found else { return Self::default() };
        let label = label.as_ref().map(|label| String::from_utf8_lossy(label).into_owned());
        Self { contents: Some(name), label, uuid: uuid.clone() }
    }
}

/// A row of the table.
type Row = [String; 6];

/// A table as lsblk prints one.
fn print(
    name: &str,
    format: &str,
    snapshots: &[Past],
    layers: &Layers,
    out: &mut dyn Write,
) -> Result<()> {
    let title = ["NAME", "SIZE", "TYPE", "CONTENTS", "LABEL", "UUID"].map(str::to_owned);
    let root = row(&layers.nodes()[0], text::visible(name), format.to_owned());
    let mut rows = vec![title, root];
    rows.extend(snapshots.iter().map(|past| {
        let [name, bytes] = [text::visible(&past.name), text::short_bytes(past.bytes)];
        [
            format!("@{name}"),
            bytes,
            "snapshot".to_owned(),
            String::new(),
            String::new(),
            String::new(),
        ]
    }));
    branches(layers, 0, "", &mut rows);
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

/// Adds the rows of all that is in a device, behind `indent`.
fn branches(layers: &Layers, number: usize, indent: &str, rows: &mut Vec<Row>) {
    let inside = inside(layers, number);
    for (index, number) in inside.iter().enumerate() {
        let (branch, further) = match index + 1 == inside.len() {
            true => ("\u{2514}\u{2500}", "  "),
            false => ("\u{251c}\u{2500}", "\u{2502} "),
        };
        let node = &layers.nodes()[*number];
        let (name, kind) = match &node.place {
            Place::Partition(partition) => {
                let named = match partition.name.as_str() {
                    "" => partition.number.to_string(),
                    name => format!("{} \"{}\"", partition.number, text::visible(name)),
                };
                (named, partition.kind.to_string())
            }
            Place::Logical { group, name, .. } => {
                (text::visible(&format!("{group}/{name}")), "logical volume".to_owned())
            }
            Place::Array { name, level } => {
                let name = if name.is_empty() { "array" } else { name };
                (text::visible(name), level.clone())
            }
            Place::Decrypted => ("decrypted".to_owned(), "LUKS".to_owned()),
            Place::Whole => (text::visible(&name_of(node)), "disk".to_owned()),
        };
        rows.push(row(node, format!("{indent}{branch}{name}"), kind));
        branches(layers, *number, &format!("{indent}{further}"), rows);
    }
}

fn row(node: &Node, name: String, kind: String) -> Row {
    let contents = Contents::new(node.contents.as_ref());
    let words = contents
        .contents
        .map(|name| name.trim_start_matches("a ").trim_start_matches("an ").to_owned());
    let found = match (words, node.why_not()) {
        (Some(name), Some(fault)) => format!("{name}: {}", text::visible(fault)),
        (Some(name), None) => name,
        (None, Some(fault)) => text::visible(fault),
        (None, None) => "unknown".to_owned(),
    };
    let shown = |text: &Option<String>| text.as_deref().map(text::visible).unwrap_or_default();
    [
        name,
        text::short_bytes(node.bytes),
        kind,
        found,
        shown(&contents.label),
        shown(&contents.uuid),
    ]
}
