//! Where the attribute fork of an inode starts (docs/algorithms/attributes.md#fork-offset).
//!
//! The inode's literal area is shared: the data fork lies below the offset, the attribute fork
//! above. Attributes that grow move the boundary down as long as the data fork keeps the bytes it
//! uses; attributes that shrink do not move it back.

use crate::format::ForkFormat;
use crate::geometry::Geometry;

/// The offset is stored in units of this many bytes.
const UNIT: usize = 8;

/// Bytes of an inline extent tree root with `pointers` pointers.
const fn tree_root(pointers: usize) -> usize {
    4 + 16 * pointers
}

/// Pointers that the data fork and the attribute fork must at least have room for.
const DATA_POINTERS: usize = 3;
const ATTR_POINTERS: usize = 2;

/// The inputs of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForkShape {
    /// Format of the data fork.
    pub data_format: ForkFormat,
    /// Bytes that the data fork uses now: local content, extent records, or tree root.
    pub data_used: usize,
    /// Present offset in units of 8 bytes, 0 without an attribute fork.
    pub forkoff: u8,
}

/// Offset of an attribute fork that is empty, or too large for the inode.
#[must_use]
pub(crate) fn default_offset(geometry: &Geometry, data_format: ForkFormat) -> u8 {
    let bytes = if data_format == ForkFormat::Dev {
        UNIT
    } else if geometry.inode_size() == 256 {
        geometry.literal_size() - tree_root(ATTR_POINTERS)
    } else {
        tree_root(6 * ATTR_POINTERS)
    };
    units(bytes)
}

/// Offset with which the attribute fork has room for a list of `bytes` bytes; `None` if it cannot.
/// Data of an inode without attribute fork that fills it to the end has no room then.
#[must_use]
pub(crate) fn fit(geometry: &Geometry, shape: &ForkShape, bytes: usize) -> Option<u8> {
    let literal = geometry.literal_size();
    let current = usize::from(shape.forkoff);
    let offset = literal.checked_sub(bytes)? / UNIT;
    if shape.data_format == ForkFormat::Dev {
        return (offset >= 1).then_some(1);
    }
    if current > 0 && bytes <= literal.saturating_sub(current * UNIT) {
        return Some(shape.forkoff);
    }
    let need = match shape.data_format {
        // The root of a tree that shares the inode does not move.
        ForkFormat::Btree if current > 0 => {
            return (offset >= current).then_some(shape.forkoff);
        }
        // So many records would become a tree first.
        ForkFormat::Extents
            if current == 0
                && shape.data_used
                    > usize::from(default_offset(geometry, shape.data_format)) * UNIT =>
        {
            tree_root(DATA_POINTERS)
        }
        _ => shape.data_used,
    };
    let least = need.max(tree_root(DATA_POINTERS)).div_ceil(UNIT);
    let most = (literal - tree_root(ATTR_POINTERS)) / UNIT;
    if offset >= most {
        Some(units(most * UNIT))
    } else if offset >= least {
        Some(units(offset * UNIT))
    } else {
        None
    }
}

/// An inode has at most 2,048 bytes, so offsets fit eight bits.
const fn units(bytes: usize) -> u8 {
    (bytes / UNIT) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::samples::geometry;
    use proptest::prelude::*;

    const fn shape(data_format: ForkFormat, data_used: usize, forkoff: u8) -> ForkShape {
        ForkShape { data_format, data_used, forkoff }
    }

    #[test]
    fn offsets_of_the_reference() {
        let geometry = geometry(12, 9);
        assert_eq!(default_offset(&geometry, ForkFormat::Extents), 24);
        assert_eq!(default_offset(&geometry, ForkFormat::Dev), 1);
        // The root directory of a fresh volume: 6 bytes of entries, 25 of attributes.
        assert_eq!(fit(&geometry, &shape(ForkFormat::Local, 6, 0), 25), Some(37));
        // Room is there already: nothing moves.
        assert_eq!(fit(&geometry, &shape(ForkFormat::Extents, 16, 24), 144), Some(24));
        assert_eq!(fit(&geometry, &shape(ForkFormat::Extents, 16, 24), 145), Some(23));
        // The data fork keeps three tree pointers.
        assert_eq!(fit(&geometry, &shape(ForkFormat::Extents, 16, 24), 280), Some(7));
        assert_eq!(fit(&geometry, &shape(ForkFormat::Extents, 16, 24), 281), None);
        assert_eq!(fit(&geometry, &shape(ForkFormat::Extents, 160, 24), 177), None);
        assert_eq!(fit(&geometry, &shape(ForkFormat::Extents, 160, 24), 176), Some(20));
        // More records than the default leaves room for become a tree.
        assert_eq!(fit(&geometry, &shape(ForkFormat::Extents, 208, 0), 250), Some(10));
        // A tree stays where it is.
        assert_eq!(fit(&geometry, &shape(ForkFormat::Btree, 52, 24), 145), None);
        assert_eq!(fit(&geometry, &shape(ForkFormat::Btree, 52, 0), 145), Some(23));
        // A device number needs one unit.
        assert_eq!(fit(&geometry, &shape(ForkFormat::Dev, 4, 0), 328), Some(1));
        assert_eq!(fit(&geometry, &shape(ForkFormat::Dev, 4, 1), 329), None);
    }

    proptest! {
        #[test]
        fn both_forks_have_room(
            inode_log in 9_u8..12,
            used in 0_usize..400,
            forkoff in 0_u8..=37,
            bytes in 4_usize..2000,
        ) {
            let geometry = geometry(12, inode_log);
            let shape = shape(ForkFormat::Local, used, forkoff);
            prop_assume!(forkoff == 0 || used <= usize::from(forkoff) * 8);
            if let Some(offset) = fit(&geometry, &shape, bytes) {
                let data = usize::from(offset) * 8;
                // Data that leaves less than the least room for attributes makes way.
                let most = (geometry.literal_size() - tree_root(ATTR_POINTERS)) / UNIT * UNIT;
                prop_assert!(data >= used || (forkoff == 0 && used > most));
                prop_assert!(data + bytes <= geometry.literal_size());
            }
        }
    }
}
