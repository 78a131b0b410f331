//! Why nothing can be looked for.

use thiserror::Error;
use undercroft_block::BlockError;
use undercroft_xfs_format::SuperblockError;
use uuid::Uuid;

/// Why a device could not be looked through, or a file not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),

    /// The first superblock is not one.
    #[error("no XFS file system is known there: {0}")]
    Superblock(#[from] SuperblockError),

    /// Too little of a volume is left.
    #[error(
        "too little is left of the volume {uuid} to tell where it starts and how long its groups are"
    )]
    Shapeless {
        /// The volume.
        uuid: Uuid,
    },

    /// A tree that says what is in use is damaged: what is free cannot be told from it.
    #[error("the {tree} of allocation group {group} is damaged at block {block}: {what}")]
    Tree {
        /// Name of the tree or header.
        tree: &'static str,
        /// Group.
        group: u32,
        /// Block in the group.
        block: u32,
        /// The field and its defect.
        what: String,
    },
}
