//! Extended attributes: in the inode, in leaves, and values in blocks of their own; access control
//! lists, which are attributes.

mod acl;
mod acl_text;
mod leaf;
mod leaf_edit;
mod name;
mod remote;
mod shortform;

pub use acl::{Acl, AclEntry, AclError, AclKind, AclTag};
pub use leaf::{
    ATTR_ENTRY_SIZE, AttrLeafEntry, AttrLeafLayout, AttrValue, local_item_size, remote_item_size,
    verify_attr_leaf,
};
pub use leaf_edit::AttrItem;
pub use name::{
    ATTR_NAME_MAX, ATTR_VALUE_MAX, AttrFlags, Namespace, PARENT_VALUE_SIZE, verify_attr_name,
};
pub use remote::{
    ATTR_REMOTE_MAGIC, attr_remote_blocks, attr_remote_part, attr_remote_payload,
    verify_attr_remote, write_attr_remote,
};
pub use shortform::{
    AttrShortform, SHORTFORM_COUNT_MAX, SHORTFORM_HEADER, SHORTFORM_PART_MAX, ShortformBuilder,
    ShortformEntry, shortform_entry_size,
};
