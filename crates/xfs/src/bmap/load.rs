//! The extents of a fork, read from its tree at first use.

use super::tree::MapReader;
use crate::btree::Cursor;
use crate::error::Error;
use crate::format::Extent;
use crate::geometry::Geometry;
use crate::inode::ExtentList;
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::units::FileBlock;
use crate::volume::Volume;
use std::ops::ControlFlow;

/// All extents of a fork, ascending. An attribute fork that does not exist has none.
///
/// # Errors
/// The tree is damaged, or the device failed.
pub fn extents<'i>(
    volume: &Volume,
    inode: &'i InodeState,
    kind: ForkKind,
) -> Result<&'i ExtentList, Error> {
    let Some(fork) = inode.fork(kind) else {
        return Ok(ExtentList::none());
    };
    if let Some(extents) = fork.extents.get() {
        return Ok(extents);
    }
    let ForkContent::Btree(root, count) = &fork.content else {
        return Ok(fork.known_extents());
    };
    let damaged = |what: String| Error::Inode { inode: inode.number, what };
    let mut tree = MapReader { volume, inode: inode.number, root };
    let mut list = Vec::new();
    Cursor::new().for_each(&mut tree, |extent| {
        if list.len() as u64 >= *count {
            return Err(damaged(format!("more extents in the tree than the {count} counted")));
        }
        list.push(extent);
        Ok(ControlFlow::Continue(()))
    })?;
    if list.len() as u64 != *count {
        return Err(damaged(format!("{} extents in the tree, {count} counted", list.len())));
    }
    check(&list, volume.geometry()).map_err(damaged)?;
    Ok(fork.extents.get_or_init(|| ExtentList::from_sorted(list)))
}

impl ExtentList {
    /// Decodes the list of extents inside an inode; the error names the defect.
    pub(crate) fn decode<'b>(
        records: impl Iterator<Item = &'b [u8]>,
        geometry: &Geometry,
    ) -> Result<Self, String> {
        let list: Vec<Extent> = records.map(Extent::decode).collect();
        check(&list, geometry)?;
        Ok(Self::from_sorted(list))
    }
}

/// Checks that extents are legal, ascending and disjoint, and lie on the data device.
fn check(list: &[Extent], geometry: &Geometry) -> Result<(), String> {
    let mut end = FileBlock(0);
    for extent in list {
        extent.validate().map_err(|defect| format!("extent {extent:?}: {defect}"))?;
        if extent.offset < end {
            return Err(format!("extent {extent:?} overlaps the one before"));
        }
        if !geometry.valid_extent(extent.start, extent.len.into()) {
            return Err(format!("extent {extent:?} lies outside its allocation group"));
        }
        end = extent.end();
    }
    Ok(())
}
