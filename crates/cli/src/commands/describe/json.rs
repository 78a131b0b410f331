//! A listing as JSON, an object a line.

use crate::{report, text};
use serde::Serialize;
use std::io::{self, Write};
use undercroft_image::pack::file_type;
use undercroft_source::describe::{Item, Listing};
use undercroft_source::{EntryPath, Kind, Timestamp};
use undercroft_xfs::format;

/// A name.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    path: text::Name,
    kind: &'static str,
    mode: String,
    uid: u32,
    gid: u32,
    mtime: String,
    /// Number of names; of directories it depends on the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<u32>,
    /// The first name of the file, if this is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_to: Option<text::Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Offset and length of the ranges that are no holes.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<(u64, u64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<text::Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<text::Attribute>,
}

/// Writes a line for each name.
pub(super) fn write(listing: &Listing, out: &mut dyn Write) -> io::Result<()> {
    listing.items().try_for_each(|item| report::json_line(out, &line(&item)))
}

fn line<'a>(item: &Item<'a>) -> Line<'a> {
    let whole = |path: &EntryPath| text::Name::new(&[b"/", path.as_bytes()].concat());
    let Timestamp { seconds, nanoseconds } = item.metadata.mtime;
    let (mut size, mut data, mut target, mut device) = (None, None, None, None);
    match item.kind {
        Kind::Regular { size: bytes, data: ranges } => {
            size = Some(*bytes);
            data = Some(ranges.iter().map(|range| (range.offset, range.length)).collect());
        }
        Kind::Symlink(text) => target = Some(text::Name::new(text)),
        Kind::CharDevice(number) | Kind::BlockDevice(number) => {
            device = Some((number.major, number.minor));
        }
        _ => {}
    }
    let attributes =
        item.xattrs.iter().map(|xattr| text::Attribute::new(&xattr.name, &xattr.value));
    Line {
        path: whole(item.path),
        kind: text::kind(file_type(item.kind)),
        mode: format!("{:04o}", item.metadata.mode),
        uid: item.metadata.uid,
        gid: item.metadata.gid,
        mtime: text::time(format::Timestamp { seconds, nanoseconds }),
        links: (*item.kind != Kind::Directory).then_some(item.links),
        link_to: item.first.map(whole),
        size,
        data,
        sha256: item.digest,
        target,
        device,
        attributes: attributes.collect(),
    }
}
