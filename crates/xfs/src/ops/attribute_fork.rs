//! The attribute fork of an inode that has none (docs/algorithms/attributes.md#fork-offset).

use crate::attr::fork_offset::{ForkShape, default_offset, fit};
use crate::bmap::ForkWriter;
use crate::da::{DaFork, DaForkMut};
use crate::dir;
use crate::error::Error;
use crate::format::{FileType, symlink_blocks};
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::symlink;
use crate::trans::Transaction;

/// Divides the inode between its data and attributes that take `list` bytes in it; `None` if they
/// cannot be there. Data that has to make way moves to a block.
pub(super) fn make(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    list: Option<usize>,
) -> Result<(), Error> {
    if inode.core.forkoff > 0 {
        return Ok(());
    }
    let geometry = trans.geometry();
    let shape = ForkShape {
        data_format: inode.data.format(),
        data_used: inode.data.bytes_used(),
        forkoff: 0,
    };
    let fitting = list.and_then(|bytes| fit(geometry, &shape, bytes));
    let units = fitting.unwrap_or_else(|| default_offset(geometry, shape.data_format));
    ForkWriter::new(trans, inode, ForkKind::Attr).set_fork_offset(units)?;
    let file_type = inode.file_type();
    let mut data = ForkWriter::new(trans, inode, ForkKind::Data);
    let room = data.inline_size();
    let Some(target) = data.local().filter(|content| content.len() > room).map(<[u8]>::to_vec)
    else {
        return Ok(());
    };
    if file_type == FileType::Directory {
        return dir::leave_inode(&mut data);
    }
    data.set_local(None)?;
    symlink::write(&mut data, &target)
}

/// Blocks that [`make`] may need, beside one for a mapping tree.
pub(super) fn blocks(trans: &Transaction<'_>, inode: &InodeState) -> u64 {
    let geometry = trans.geometry();
    match &inode.data.content {
        ForkContent::Local(content) if inode.core.forkoff == 0 => match inode.file_type() {
            FileType::Directory => geometry.dir_block_blocks().into(),
            _ => symlink_blocks(geometry, content.len()).into(),
        },
        _ => 0,
    }
}
