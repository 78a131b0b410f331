//! What is made of a file that may hold a disk in a format of its own.

/// What is made of a file that looks as if it held a disk in a format of its own, such as qcow2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskFormat {
    /// The disk in it. One that has only the changes to another file is refused.
    #[default]
    Auto,
    /// The same, and that other file is read, too.
    Backed,
    /// A disk of the bytes as they are.
    Raw,
}
