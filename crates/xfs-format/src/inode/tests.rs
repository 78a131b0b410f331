//! Tests of the inode core: the example of docs/format/inodes.md#example, and damaged bytes.

use super::samples::{geometry, root_inode};
use super::*;
use crate::units::{AgInode, InodeNumber};
use proptest::prelude::*;

#[test]
fn the_worked_root_inode() {
    let (bytes, geometry) = (root_inode(), geometry(12, 9));
    assert!(inode_crc_matches(&bytes));
    let core = InodeCore::decode(&bytes, &geometry).unwrap();
    assert_eq!(core.verify(InodeNumber(128), &geometry), Ok(()));
    assert_eq!(core.file_type(), Some(FileType::Directory));
    assert_eq!((core.nlink, core.size, core.changecount), (2, 6, 4));
    assert_eq!(core.data_fork(&geometry), 176..472);
    assert_eq!(core.attr_fork(&geometry), 472..512);
    let mut again = bytes.clone();
    again[..176].fill(0xff);
    core.encode(&mut again, &geometry).unwrap();
    stamp_inode_crc(&mut again);
    assert_eq!(again, bytes);
    assert!(core.verify(InodeNumber(129), &geometry).unwrap_err().contains("128"));
}

#[test]
fn never_used_inodes_verify_as_free() {
    let geometry = geometry(12, 9);
    let mut bytes = vec![0xaa; 512];
    InodeCore::write_never_used(&mut bytes, &geometry, InodeNumber(131), 7);
    let core = InodeCore::decode(&bytes, &geometry).unwrap();
    assert_eq!((core.mode, core.generation, core.next_unlinked), (0, 7, AgInode::NULL));
    assert_eq!(core.verify(InodeNumber(131), &geometry), Ok(()));
}

#[test]
fn rules_are_told_apart() {
    let geometry = geometry(12, 9);
    let good = InodeCore::decode(&root_inode(), &geometry).unwrap();
    let check = |change: &dyn Fn(&mut InodeCore), word: &str| {
        let mut core = good.clone();
        change(&mut core);
        let message = core.verify(InodeNumber(128), &geometry).unwrap_err();
        assert!(message.contains(word), "{message:?} should tell {word:?}");
    };
    check(&|core| core.size = 1 << 63, "negative");
    check(&|core| core.size = 0, "size 0");
    check(&|core| core.size = 297, "297 bytes");
    check(&|core| core.forkoff = 42, "offset 42");
    check(&|core| core.mode = 0o070_755, "file type");
    check(&|core| core.data_extents = 1, "1 + 0 extents");
    check(&|core| core.nblocks = 1, "without extents");
    check(&|core| core.extsize = 4, "size hint 4");
    check(&|core| core.flags = InodeFlags::from_bits_retain(0x8000), "0x8000");
    check(&|core| core.flags2 |= InodeFlags2::METADATA, "METADATA");
    check(&|core| core.flags2 |= InodeFlags2::REFLINK, "shared blocks");
    check(&|core| core.attr_format = ForkFormat::Btree, "attribute extents");
    check(&|core| core.data_format = ForkFormat::Dev, "offset 37");
    check(&|core| core.mode = 0o100_644, "Regular");
    check(&|core| core.metatype = 1, "metadata type");
    check(&|core| core.next_unlinked = AgInode(1), "unlinked");
    check(&|core| core.data_format = ForkFormat::Extents, "fits the inode");
}

#[test]
fn version_1_inodes_become_version_2() {
    let mut geometry = geometry(12, 8);
    geometry.features.crc = false;
    let mut bytes = vec![0; 256];
    InodeCore::write_never_used(&mut bytes, &geometry, InodeNumber(128), 3);
    bytes[4] = 1;
    bytes[6..8].copy_from_slice(&5_u16.to_be_bytes());
    let core = InodeCore::decode(&bytes, &geometry).unwrap();
    assert_eq!((core.version, core.nlink), (2, 5));
    core.encode(&mut bytes, &geometry).unwrap();
    assert_eq!(InodeCore::decode(&bytes, &geometry).unwrap(), core);
    assert_eq!(core.data_fork(&geometry), 100..256);
}

proptest! {
    #[test]
    fn any_bytes_decode_or_are_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 512),
        crc: bool,
        format in 0_u8..6,
        aformat in 0_u8..6,
        wide: bool,
    ) {
        let mut geometry = geometry(12, 9);
        geometry.features.crc = crc;
        bytes[..2].copy_from_slice(b"IN");
        bytes[4] = if crc { 3 } else { 2 };
        bytes[5] = format;
        bytes[83] = aformat;
        if wide {
            bytes[80..82].fill(0);
            bytes[127] |= 0x10;
        } else {
            bytes[24..32].fill(0);
            bytes[127] &= !0x10;
        }
        bytes[127] |= 8;
        if let Ok(core) = InodeCore::decode(&bytes, &geometry) {
            let _ = core.verify(InodeNumber(128), &geometry);
            prop_assert!(core.data_fork(&geometry).end <= 512);
            let mut again = bytes.clone();
            if core.encode(&mut again, &geometry).is_ok() {
                prop_assert_eq!(InodeCore::decode(&again, &geometry).unwrap(), core);
            }
        } else {
            prop_assert!(false, "these bytes have a legal shape");
        }
    }
}
