//! A tree rooted in the headers of a group, as the B+tree engine sees it.

use super::GroupState;
use crate::alloc::{self, Mode, Pool, Request};
use crate::cache::{BufferAddress, BufferRef, EditGuard};
use crate::error::Error;
use crate::format::{BufferKind, RmapOwner, TreeKind};
use crate::trans::Transaction;
use crate::units::AgBlock;

/// One tree of a locked group, open in a transaction.
#[derive(Debug)]
pub struct AgTree<'t, 'v> {
    trans: &'t mut Transaction<'v>,
    group: &'t mut GroupState,
    tree: TreeKind,
}
