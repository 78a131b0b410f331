//! Names and binary form of POSIX access control lists in attributes.
//!
//! The form is that of `posix_acl_xattr.h`: a version of 32 bits, then for each entry 16 bits of tag, 16
//! bits of permissions and 32 bits of id, little-endian.

/// The list of a file.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
/// The list that files in a directory get.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

/// The version.
pub(crate) const VERSION: u32 = 2;

// Tags.
pub(crate) const USER_OBJ: u16 = 0x01;
pub(crate) const USER: u16 = 0x02;
pub(crate) const GROUP_OBJ: u16 = 0x04;
pub(crate) const GROUP: u16 = 0x08;
pub(crate) const MASK: u16 = 0x10;
pub(crate) const OTHER: u16 = 0x20;
