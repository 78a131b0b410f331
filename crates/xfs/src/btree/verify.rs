//! Checks of a block before anything in it is believed (docs/algorithms/btrees.md#checks).
//!
//! Two steps: what the bytes alone can tell, for the cache on every read and write; and what the
//! place in the tree tells, for the cursor. After both, a walk can follow counts and pointers
//! without looking outside a block or back at the block it came from.

use super::kind::{BlockPointer, BtreeKind};
use super::store::{PointerOf, ReadTree};
use crate::cache::BufferRef;
use crate::error::TreeCorruption;
use crate::format::verify_tree_block;
use crate::format::{FieldDefect, HeaderLayout, Rule, TreeGeometry, TreeKind};
use undercroft_block::Sector;

/// The error for a defect in the block at `pointer` (`None`: the root inside an inode).
#[cold]
pub(super) fn corrupt<S: ReadTree + ?Sized>(
    store: &S,
    pointer: Option<PointerOf<S>>,
    level: usize,
    defect: FieldDefect,
) -> S::Error {
    let block = pointer.map(BlockPointer::number);
    let tree = <S::Kind as BtreeKind>::TREE;
    TreeCorruption { tree, owner: store.owner(), block, level, defect }.into()
}

/// The block at `pointer`, which must be a block of this tree at `level`.
pub(super) fn read_block<S: ReadTree>(
    store: &mut S,
    pointer: PointerOf<S>,
    level: usize,
) -> Result<BufferRef, S::Error> {
    if let Some(buffer) = store.recent(pointer, level) {
        return Ok(buffer);
    }
    if !store.contains(pointer) {
        let rule = Rule::Text("inside the group or volume, behind its headers");
        let defect = FieldDefect { field: "pointer", found: pointer.number(), rule };
        return Err(corrupt(store, Some(pointer), level, defect));
    }
    let buffer = store.read(pointer, level)?;
    let verdict = verify_place(store, &buffer.read(), pointer, level);
    verdict.map_err(|defect| corrupt(store, Some(pointer), level, defect))?;
    store.remember(pointer, level, &buffer);
    Ok(buffer)
}

fn verify_place<S: ReadTree>(
    store: &S,
    bytes: &[u8],
    pointer: PointerOf<S>,
    level: usize,
) -> Result<(), FieldDefect> {
    let (geometry, place) = (store.geometry(), (store.owner(), store.sector_of(pointer)));
    verify_header(<S::Kind as BtreeKind>::TREE, geometry, place, bytes, level)?;
    let layout = geometry.layout;
    for (field, offset) in [("leftsib", layout.left()), ("rightsib", layout.right())] {
        if let Some(sibling) = PointerOf::<S>::load(bytes, offset).present() {
            let holds = sibling != pointer && store.contains(sibling);
            let rule = Rule::Text("another block inside the group or volume");
            FieldDefect::unless(holds, field, sibling.number(), rule)?;
        }
    }
    Ok(())
}

/// What a block says of its owner and place: by code that all kinds of trees share.
fn verify_header(
    tree: TreeKind,
    geometry: &TreeGeometry,
    (owner, sector): (u64, Sector),
    bytes: &[u8],
    level: usize,
) -> Result<(), FieldDefect> {
    let (layout, len) = (geometry.layout, bytes.len() as u64);
    let size = geometry.block_size as u64;
    FieldDefect::unless(len == size, "block size", len, Rule::Equal(size))?;
    verify_tree_block(tree, layout, bytes)?;
    let (found, level) = (HeaderLayout::level(bytes), level as u64);
    FieldDefect::unless(u64::from(found) == level, "level", found, Rule::Equal(level))?;
    if let Some(found) = layout.owner(bytes) {
        FieldDefect::unless(found == owner, "owner", found, Rule::Equal(owner))?;
    }
    if let Some(found) = layout.blkno(bytes) {
        FieldDefect::unless(found == sector.0, "blkno", found, Rule::Equal(sector.0))?;
    }
    Ok(())
}
