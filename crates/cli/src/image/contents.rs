//! What an image holds that is no volume, and the way on.

use super::keys::{HOW, KeyRing};
use crate::text;
use std::sync::Arc;
use undercroft_block::{BlockDevice, BlockError, Sector, is_zero, read_buffer};
use undercroft_container::layers::{Choice, Depth, Layers, Node, Place};
use undercroft_source::{FOREIGN_HEAD, Foreign, ForeignKind};

/// What a device holds, if it is known.
#[cfg(feature = "network")]
pub(crate) fn of(device: &dyn BlockDevice) -> Option<Foreign> {
    undercroft_source::recognise(&head(device).ok()?)
}

pub(super) fn is_container(found: &Foreign) -> bool {
    found.kind == ForeignKind::Container
}

fn head(device: &dyn BlockDevice) -> Result<Vec<u8>, BlockError> {
    let bytes = device.capacity().to_bytes().unwrap_or(u64::MAX).min(FOREIGN_HEAD as u64);
    if bytes == 0 {
        return Ok(Vec::new());
    }
    // No more than what is recognised.
    Ok(read_buffer(device, Sector::ZERO, bytes as usize)?.to_vec())
}

/// What is in a disk, in words: number or name, what each is for, length, contents.
pub(super) fn list(layers: &Layers) -> String {
    let mut words = Vec::new();
    let mut work: Vec<usize> = inside(layers, 0).into_iter().rev().collect();
    while let Some(number) = work.pop() {
        words.push(describe(&layers.nodes()[number]));
        work.extend(inside(layers, number).into_iter().rev());
    }
    words.join("; ")
}

/// The numbers of the devices in a device.
pub(crate) fn inside(layers: &Layers, number: usize) -> Vec<usize> {
    let all = layers.nodes().iter().enumerate();
    all.filter(|(_, node)| node.parent == Some(number)).map(|(number, _)| number).collect()
}

fn describe(node: &Node) -> String {
    let bytes = text::bytes(node.bytes);
    let name = match &node.place {
        Place::Partition(partition) => {
            let named = match partition.name.as_str() {
                "" => String::new(),
                name => format!(" \"{}\"", name.escape_debug()),
            };
            format!("{} ({}{named}, {bytes})", partition.number, partition.kind)
        }
        Place::Logical { group, name, .. } => {
            let (group, name) = (group.escape_debug(), name.escape_debug());
            format!("{group}/{name} (logical volume, {bytes})")
        }
        Place::Decrypted => format!("in it ({bytes})"),
        Place::Array { .. } => format!("{} ({bytes})", node.place),
        Place::Whole => match &node.device {
            Ok(device) => format!("{} ({bytes})", text::visible(device.name())),
            Err(_) => bytes,
        },
    };
    let contents = node.contents.as_ref().map(ToString::to_string);
    match (contents, node.why_not()) {
        (Some(contents), Some(fault)) => format!("{name}: {contents}, but {fault}"),
        (Some(contents), None) => format!("{name}: {contents}"),
        (None, Some(fault)) => format!("{name}: {fault}"),
        (None, None) => format!("{name}: unknown"),
    }
}

/// Why there is no volume on a device, and the way on; `None` if it begins as a volume does.
pub(super) fn refusal(device: &Arc<dyn BlockDevice>, keys: &KeyRing) -> Option<String> {
    if device.capacity() == Sector::ZERO && device.members().is_empty() {
        return None;
    }
    let keys = keys.keys();
    let layers = Layers::look(device, &Choice::default(), Depth::Everything, &keys).ok()?;
    let how = if layers.is_locked() { format!("; {HOW}") } else { String::new() };
    why_none(&layers, device).map(|why| why + &how)
}

fn why_none(layers: &Layers, device: &Arc<dyn BlockDevice>) -> Option<String> {
    let [root, inside @ ..] = layers.nodes() else { return None };
    if root.is_volume() {
        return None;
    }
    if !inside.is_empty() {
        let what = match (root.table, device.members()) {
            (Some(_), _) => "a disk with partitions",
            (None, []) => "a disk with others in it",
            (None, _) => "several disks",
        };
        let how = match inside.iter().filter(|node| node.is_volume()).count() {
            0 => "none of them with XFS",
            _ => "choose one with --partition, by number, name or label, or with --lv",
        };
        return Some(format!("it is {what}, {how}: {}", list(layers)));
    }
    match (&root.contents, &root.fault) {
        (Some(found), Some(fault)) => return Some(format!("it is {found}, but {fault}")),
        (Some(found), None) if found.kind != ForeignKind::Table => return Some(unusable(found)),
        _ => {}
    }
    let head = head(&**device).unwrap_or_default();
    let is_empty = !head.is_empty() && is_zero(&head);
    let what = if is_empty { "begins with zeroes" } else { "begins with nothing that is known" };
    Some(format!(
        "it {what}, and not with an XFS volume; --offset says where one starts that starts later"
    ))
}

/// What to do with contents that are not read.
pub(super) fn unusable(found: &Foreign) -> String {
    match found.kind {
        ForeignKind::FileSystem => format!("it holds {found}, not XFS; {}", way(found)),
        _ => format!("it is {found}: {}", way(found)),
    }
}

/// The way from contents to a volume, with the commands that it takes.
pub(super) fn way(found: &Foreign) -> &'static str {
    match found.kind {
        ForeignKind::FileSystem => {
            "mount it; `undercroft build DIRECTORY NEW` makes an XFS volume of what is in it"
        }
        ForeignKind::Archive => {
            "unpack it; `undercroft build DIRECTORY NEW` makes a volume of what is in it"
        }
        ForeignKind::Tar => "`undercroft build` makes a volume of it",
        ForeignKind::Table => "choose a partition with --partition",
        _ => found.way,
    }
}
