//! Outside judges for the tests of this workspace: programs and a kernel that were not written
//! here, and the means to ask them.
//!
//! - [`xfsprogs`]: `mkfs.xfs`, `xfs_repair`, `xfs_db`, of the distribution and the newest; [`composefs`]: the newest of its tools;
//! - [`mount`]: the kernel's own XFS through a loop device; [`kernel`]: whether it can be asked;
//! - [`served`]: a mount of ours through FUSE; [`suite`]: suites for mounts; [`load`]: a load whose
//!   every acknowledged sync is known, to be cut off by crashes;
//! - [`nbd`]: NBD servers of others, and a wire that can be cut;
//! - [`objects`]: an object store of others, and a way to it that is slow, and lies;
//! - [`loop_device`]: a block device over a file; [`first_read`]: a file that changes when it is read;
//! - [`tree`]: whether two directory trees are the same, field by field;
//! - [`odd`] and [`random`]: trees to pack; [`populate`]: volumes that a kernel filled and aged;
//! - [`cache`]: where judges are that no package brings; [`image`]: copies of images; [`mod@rounds`]: how often tests repeat;
//! - [`matrix`]: the formats worth testing; [`damage`]: ways to break a volume.
//!
//! Nothing here is part of what the project ships. A judge that is missing is an error with its
//! remedy, never a test that passes without it.

#![forbid(unsafe_code)]

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod error;
pub mod kernel;
pub mod rounds;
mod sparse;

pub mod first_read;
pub mod image;
pub mod odd;
pub mod program;
pub mod random;
pub mod tree;

pub mod cache;
pub mod load;
pub mod loop_device;
pub mod mount;
pub mod nbd;
pub mod populate;

pub mod composefs;
pub mod lvm;
pub mod objects;
pub mod served;
pub mod xfsprogs;

pub mod damage;
pub mod scratch;
pub mod suite;

pub mod matrix;

pub use error::{Error, Report};
pub use loop_device::LoopDevice;
pub use mount::LoopMount;
pub use rounds::rounds;
pub use scratch::Scratch;
pub use served::ServedMount;
pub use xfsprogs::Xfsprogs;
