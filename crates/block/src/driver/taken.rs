//! Files and disks that are in use.

use std::path::PathBuf;

use thiserror::Error;

/// Another program or mount has a file or disk, or has it as well.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} {holder}")]
pub struct Taken {
    /// Path of the file or disk.
    pub name: String,
    /// Its holder.
    pub holder: Holder,
}

/// The holder of a file or disk.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// The kernel.
    #[error("is mounted at {}; unmount it first", .0.display())]
    Mount(PathBuf),
    /// A program that opened it to change it, or the kernel where that cannot be seen.
    #[error("is in use by another program; wait until that is done")]
    Program,
    /// The user of this device, which is made of it.
    #[error("is in use through {}; end that first", .0.display())]
    Device(PathBuf),
    /// A holder of the same device, or of one over it: [`Reserved`](crate::Reserved).
    #[error(
        "is open for change in this program; close what has it, or drop that with all that belongs to it"
    )]
    Here,
    /// No path: the one that it was opened by leads to nothing, or to another file.
    #[error("was removed or replaced while it was open; what is changed in it is lost with it")]
    Nameless,
}
