//! Verbs on what an inode says of its file: modes, owners, times, attributes, access lists.

pub(crate) mod chmod;
pub(crate) mod chown;
pub(crate) mod extsize;
pub(crate) mod getacl;
pub(crate) mod getxattr;
pub(crate) mod rmxattr;
pub(crate) mod setacl;
pub(crate) mod setxattr;
pub(crate) mod touch;
