//! Differences of two entries beside their contents.

use super::difference::{Change, kind_word};
use super::{Aspect, DiffOptions};
use std::cmp::Ordering;
use undercroft_source::{DataRange, Entry, Kind, Xattr};

/// The differences of two entries under one path, neither a hard link, in their order; without
/// contents.
pub(super) fn changes(left: &Entry, right: &Entry, options: &DiffOptions) -> Vec<Change> {
    let mut found = Vec::new();
    let mut add = |aspect, change| {
        if options.wants(aspect) {
            found.push(change);
        }
    };
    let (one, other) = (&left.metadata, &right.metadata);
    if one.mode != other.mode {
        add(Aspect::Mode, Change::Mode(one.mode, other.mode));
    }
    let owners = ((one.uid, one.gid), (other.uid, other.gid));
    if owners.0 != owners.1 {
        add(Aspect::Owner, Change::Owner(owners.0, owners.1));
    }
    if one.mtime != other.mtime {
        add(Aspect::Mtime, Change::Mtime(one.mtime, other.mtime));
    }
    match (&left.kind, &right.kind) {
        (Kind::Regular { size: one, data: mine }, Kind::Regular { size: other, data: others }) => {
            if one != other {
                add(Aspect::Size, Change::Size(*one, *other));
            }
            if let Some(at) = first_hole(mine, others) {
                add(Aspect::Holes, Change::Holes(at));
            }
        }
        (Kind::Symlink(one), Kind::Symlink(other)) if one != other => {
            add(Aspect::Target, Change::Target(one.clone(), other.clone()));
        }
        (Kind::CharDevice(one), Kind::CharDevice(other))
        | (Kind::BlockDevice(one), Kind::BlockDevice(other))
            if one != other =>
        {
            add(Aspect::Device, Change::Device(*one, *other));
        }
        (one, other) if kind_word(one) != kind_word(other) => {
            found.push(Change::Kind(kind_word(one), kind_word(other)));
        }
        _ => {}
    }
    if options.wants(Aspect::Xattrs) {
        xattrs(&left.xattrs, &right.xattrs, &mut found);
    }
    found
}

/// Compares attributes, which are sorted.
fn xattrs(mut left: &[Xattr], mut right: &[Xattr], found: &mut Vec<Change>) {
    loop {
        let order = match (left.first(), right.first()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.name.cmp(&other.name),
        };
        let (mut one, mut other) = (None, None);
        if let (true, Some((first, rest))) = (order.is_le(), left.split_first()) {
            (one, left) = (Some(first), rest);
        }
        if let (true, Some((first, rest))) = (order.is_ge(), right.split_first()) {
            (other, right) = (Some(first), rest);
        }
        if one == other {
            continue;
        }
        let value = |xattr: Option<&Xattr>| xattr.map(|xattr| xattr.value.clone());
        if let Some(Xattr { name, .. }) = one.or(other) {
            found.push(Change::Xattr(name.clone(), value(one), value(other)));
        }
    }
}

/// The first byte that is data in one map of a file, and in a hole in the other.
fn first_hole(one: &[DataRange], other: &[DataRange]) -> Option<u64> {
    let (mine, others) = one
        .iter()
        .map(Some)
        .chain([None])
        .zip(other.iter().map(Some).chain([None]))
        .find(|(mine, others)| mine != others)?;
    Some(match (mine, others) {
        (Some(mine), Some(others)) if mine.offset == others.offset => mine.end().min(others.end()),
        (Some(mine), Some(others)) => mine.offset.min(others.offset),
        (Some(range), None) | (None, Some(range)) => range.offset,
        (None, None) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_holes() {
        let map = |ranges: &[(u64, u64)]| -> Vec<DataRange> {
            let range = |&(offset, length): &(u64, u64)| DataRange { offset, length };
            ranges.iter().map(range).collect()
        };
        let first = |one: &[_], other: &[_]| first_hole(&map(one), &map(other));
        assert_eq!(first(&[(0, 5)], &[(0, 5)]), None);
        assert_eq!(first(&[(0, 5)], &[(0, 7)]), Some(5));
        assert_eq!(first(&[(0, 5)], &[(1, 4)]), Some(0));
        assert_eq!(first(&[(0, 5), (9, 1)], &[(0, 5)]), Some(9));
        assert_eq!(first(&[], &[(3, 1)]), Some(3));
    }
}
