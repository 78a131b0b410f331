//! Replay of inodes (docs/format/journal/replay.md#inodes).

use super::blocks::verify_inodes;
use super::replay::{Replay, flat};
use crate::bytes::{be64, put_be32, put_be64};
use crate::error::Error;
use crate::format::{
    FileType, ForkFormat, INODE_LSN_OFFSET, InodeCore, InodeItem, InodeItemFields as Fields,
    LOG_CORE_LEN, LogItem, LoggedTransaction, core_from_log, root_from_log, stamp_inode_crc,
};
use crate::geometry::Geometry;
use crate::units::Lsn;

impl Replay {
    /// Replays an inode.
    pub(super) fn inode(
        &mut self,
        transaction: &LoggedTransaction,
        item: &LogItem<'_>,
    ) -> Result<(), Error> {
        let logged = InodeItem::decode(item.regions[0]);
        let logged = logged.map_err(|defect| transaction.damaged(defect))?;
        if self.cancels.will_free(logged.cluster, logged.cluster_sectors) {
            return Ok(());
        }
        let damaged = |what: String| {
            Error::from(transaction.damaged(format!("inode {}: {what}", logged.inode)))
        };
        let size = self.geometry.inode_size();
        let end = (logged.offset as usize).checked_add(size);
        let room = logged.cluster_sectors as usize * 512;
        if logged.cluster_sectors > 128 || end.is_none_or(|end| end > room) {
            return Err(damaged(format!("offset {} in {room} bytes", logged.offset)));
        }
        let address = flat(logged.cluster, logged.cluster_sectors);
        let image = self.images.get(&address, &self.geometry)?;
        verify_inodes(&image.bytes, &self.geometry).map_err(damaged)?;
        let inode = &mut image.bytes[logged.offset as usize..][..size];
        // Equal is replayed: several transactions may start in one record.
        let own = Lsn(be64(inode, INODE_LSN_OFFSET));
        let newer = own > transaction.lsn && !own.is_null();
        if !newer {
            let mut copy = inode.to_vec();
            apply(&logged, &item.regions[1..], &mut copy, &self.geometry).map_err(damaged)?;
            put_be64(&mut copy, INODE_LSN_OFFSET, transaction.lsn.0);
            stamp_inode_crc(&mut copy);
            let core = InodeCore::decode(&copy, &self.geometry).map_err(damaged)?;
            check_core(&core, &self.geometry).map_err(damaged)?;
            inode.copy_from_slice(&copy);
            image.set_stamped();
            if core.file_type() == Some(FileType::Directory) {
                self.pieces.add_directory(core.number);
            }
        }
        if logged.fields.intersects(Fields::DATA_OWNER | Fields::ATTR_OWNER) {
            return Err(damaged(
                "the owner of its mapping tree changes, as old kernels exchange \
                files; this version does not replay that"
                    .into(),
            ));
        }
        Ok(())
    }
}

/// Writes the core and the forks of an item into an inode.
fn apply(
    item: &InodeItem,
    regions: &[&[u8]],
    inode: &mut [u8],
    geometry: &Geometry,
) -> Result<(), String> {
    let mut regions = regions.iter().copied();
    let core = regions.next().ok_or("there is no core")?;
    core_from_log(core, inode).map_err(|defect| defect.to_string())?;
    let core = InodeCore::decode(inode, geometry)?;
    if item.fields.contains(Fields::DEVICE) {
        put_be32(inode, LOG_CORE_LEN, item.device);
    }
    let forks = [
        (Fields::DATA, Fields::DATA_ROOT, core.data_format, core.data_fork(geometry)),
        (Fields::ATTR, Fields::ATTR_ROOT, core.attr_format, core.attr_fork(geometry)),
    ];
    for (any, root, format, range) in forks {
        if !item.fields.intersects(any) {
            continue;
        }
        let image = regions.next().ok_or("the image of a fork is missing")?;
        let fork = inode.get_mut(range).ok_or("the forks overlap")?;
        if item.fields.contains(root) {
            if format == ForkFormat::MetaBtree {
                return Err("it holds a tree of a realtime group, which this version does not \
                     replay"
                    .into());
            }
            root_from_log(image, fork).map_err(|defect| defect.to_string())?;
            continue;
        }
        let room = fork.len();
        let fork = fork.get_mut(..image.len());
        let fork = fork.ok_or_else(|| format!("{} bytes in a fork of {room}", image.len()))?;
        fork.copy_from_slice(image);
    }
    Ok(())
}

/// The checks of a core that recovery makes. A free inode has none of the checked fields.
fn check_core(core: &InodeCore, geometry: &Geometry) -> Result<(), String> {
    let extents = core.data_extents.saturating_add(u64::from(core.attr_extents));
    if extents > core.nblocks {
        return Err(format!("{extents} extents in {} blocks", core.nblocks));
    }
    core.verify(core.number, geometry)
}
