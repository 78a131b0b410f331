//! The parent pointers of an inode, by its bytes.

use undercroft_xfs::check::link_sum;
use undercroft_xfs::format::{
    AttrLeafLayout, AttrShortform, AttrValue, ForkFormat, Namespace, PARENT_VALUE_SIZE, bytes,
};
use undercroft_xfs::units::InodeNumber;

use crate::error::RepairError;
use crate::inode::contents;
use crate::inode::sound::Sound;
use crate::pass::Found;
use crate::subject::Subject;

/// The sum over the parent pointers of an inode. One that cannot be right makes it that of no entries.
pub(super) fn sum(subject: &Subject, sound: &Sound, found: &Found<'_>) -> Result<u64, RepairError> {
    let (geometry, core) = (&subject.geometry, &sound.core);
    if core.forkoff == 0 {
        return Ok(0);
    }
    let fork = &found.bytes[core.attr_fork(geometry)];
    if core.attr_format == ForkFormat::Local {
        let Ok(list) = AttrShortform::parse(fork) else { return Ok(1) };
        let parents = list.entries().filter(|entry| entry.namespace == Namespace::Parent);
        return Ok(parents.fold(0, |sum, entry| sum.wrapping_add(one(entry.name, entry.value))));
    }
    let layout = AttrLeafLayout::new(geometry);
    let mut sum = 0_u64;
    contents::attribute_leaves(subject, found.number, &sound.attr.extents, &mut |block| {
        let parents = layout.entries(block).filter(|entry| entry.namespace() == Namespace::Parent);
        for entry in parents {
            let value = match entry.value {
                AttrValue::Local(value) => value,
                AttrValue::Remote { .. } => &[],
            };
            sum = sum.wrapping_add(one(entry.name, value));
        }
    })?;
    Ok(sum)
}

fn one(name: &[u8], value: &[u8]) -> u64 {
    if value.len() != PARENT_VALUE_SIZE {
        return 1;
    }
    link_sum(InodeNumber(bytes::be64(value, 0)), bytes::be32(value, 8), name)
}
