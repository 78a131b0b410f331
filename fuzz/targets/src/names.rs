//! Directories, attributes, symbolic links, access control lists.

use crate::blocks::block;
use crate::input::{Input, Patches};
use std::hint::black_box;
use undercroft_xfs::Geometry;
use undercroft_xfs::format::dir_layout::DirLayout;
use undercroft_xfs::format::{
    Acl, AclKind, AttrLeafLayout, AttrShortform, BufferKind, attr_remote_part, dir_block, dir_data,
    dir_free, dir_shortform, symlink_part, verify_attr_remote, verify_content_of,
};

/// Longest attribute value and longest link target, and a bit more.
const LENGTHS: [usize; 6] = [0, 1, 1000, 4000, 65_536, usize::MAX];

/// Directory blocks of every kind, and the short form.
pub(crate) fn directory(input: &[u8]) {
    let mut input = Input(input);
    let kinds = [
        BufferKind::DirBlock,
        BufferKind::DirData,
        BufferKind::DirFree,
        BufferKind::DirLeaf1,
        BufferKind::DirLeafN,
        BufferKind::DaNode,
    ];
    let choice = usize::from(input.byte()) % (kinds.len() + 1);
    let Some(kind) = kinds.get(choice).copied() else {
        let geometry = &crate::samples()[0].geometry;
        return directory_shortform(input.0, geometry);
    };
    let fuzzed = block(kind, input);
    let (bytes, geometry) = (&fuzzed.bytes[..], &fuzzed.geometry);
    if verify_content_of(kind, bytes, geometry).is_err() {
        return;
    }
    let layout = DirLayout::new(geometry);
    match kind {
        BufferKind::DirBlock | BufferKind::DirData => {
            let end = dir_block::tiling_end(bytes, kind);
            for item in dir_data::items(bytes, layout, end) {
                let (offset, item) = item.expect("a block that was verified can be listed");
                assert!(offset + item.len(layout) <= end, "an entry leaves its block");
            }
        }
        BufferKind::DirFree => {
            for index in 0..dir_free::valid(bytes, layout) {
                black_box(dir_free::best(bytes, layout, index));
            }
            black_box(dir_free::find_room(bytes, layout, 24));
        }
        _ => {
            let da = layout.da();
            for index in 0..da.count(bytes) {
                assert!(da.pair_offset(index) + 8 <= bytes.len(), "a hash lies outside its block");
                let (block, offset) = layout.split_pointer(da.child(bytes, index).0 as u32);
                black_box((layout.data_file_block(block), offset));
            }
        }
    }
}

/// A directory inside an inode.
pub(crate) fn directory_shortform(bytes: &[u8], geometry: &Geometry) {
    let layout = DirLayout::new(geometry);
    if let Ok(short) = dir_shortform::ShortForm::new(bytes, layout) {
        let listed: Result<Vec<_>, _> = short.entries().collect();
        if dir_shortform::verify_shortform(bytes, layout, geometry).is_ok() {
            let listed = listed.expect("a directory that was verified can be listed");
            assert_eq!(listed.len(), short.count(), "entries are missing");
        }
    }
}

/// Attribute leaves, blocks of values, and the short form.
pub(crate) fn attribute(input: &[u8]) {
    let mut input = Input(input);
    match input.byte() % 4 {
        0 => attribute_shortform(input.0),
        1 => {
            let fuzzed = block(BufferKind::AttrRemote, input);
            if verify_attr_remote(&fuzzed.bytes, &fuzzed.geometry).is_ok() {
                for (offset, len) in LENGTHS.iter().zip(LENGTHS.iter().skip(1)) {
                    drop(attr_remote_part(&fuzzed.bytes, &fuzzed.geometry, *offset, *len));
                }
            }
        }
        2 => {
            let fuzzed = block(BufferKind::DaNode, input);
            drop(verify_content_of(BufferKind::DaNode, &fuzzed.bytes, &fuzzed.geometry));
        }
        _ => {
            let fuzzed = block(BufferKind::AttrLeaf, input);
            let (bytes, geometry) = (&fuzzed.bytes[..], &fuzzed.geometry);
            if verify_content_of(BufferKind::AttrLeaf, bytes, geometry).is_ok() {
                let layout = AttrLeafLayout::new(geometry);
                let listed = layout.entries(bytes).map(|entry| (entry.namespace(), entry.name));
                assert_eq!(listed.count(), layout.count(bytes), "entries are missing");
            }
        }
    }
}

/// Attributes inside an inode.
pub(crate) fn attribute_shortform(bytes: &[u8]) {
    if let Ok(list) = AttrShortform::parse(bytes) {
        assert_eq!(list.entries().count(), list.count(), "entries are missing");
        assert!(list.size() <= bytes.len(), "the list is longer than its fork");
    }
}

/// Blocks of link targets.
pub(crate) fn symlink(input: &[u8]) {
    let fuzzed = block(BufferKind::Symlink, Input(input));
    let (bytes, geometry) = (&fuzzed.bytes[..], &fuzzed.geometry);
    if verify_content_of(BufferKind::Symlink, bytes, geometry).is_err() {
        return;
    }
    for offset in LENGTHS {
        for len in LENGTHS {
            if let Ok(part) = symlink_part(bytes, geometry, offset, len) {
                assert!(part.len() <= len, "a target is longer than was asked for");
            }
        }
    }
}

/// Access control lists: both forms, and back.
pub(crate) fn acl(input: &[u8]) {
    // A sound list of the form on disk; the input replaces or patches it.
    let sound: Vec<u8> = [(1, -1, 7), (2, 9, 5), (4, -1, 5), (0x10, -1, 5), (0x20, -1, 5)]
        .iter()
        .flat_map(|(tag, id, permissions): &(u32, i32, u16)| {
            [&tag.to_be_bytes()[..], &id.to_be_bytes(), &permissions.to_be_bytes(), &[0; 2]]
                .concat()
        })
        .collect();
    let mut patched = [&5_u32.to_be_bytes()[..], &sound].concat();
    for patch in Patches::new(Input(input)) {
        if let crate::Change::Bytes(bytes) = patch.change {
            crate::input::overwrite(&mut patched, patch.offset, bytes);
        }
    }
    for bytes in [input, &patched] {
        let disk = Acl::from_disk(bytes).map_err(|error| error.to_string());
        let xattr = Acl::from_xattr(bytes).map_err(|error| error.to_string());
        for list in [disk.ok(), xattr.ok().flatten()].into_iter().flatten() {
            let again =
                Acl::from_xattr(&list.to_xattr()).expect("a list that was written is sound");
            assert_eq!(again.as_ref(), Some(&list), "a list changes when it is written and read");
            drop(list.to_disk(AclKind::Default));
            let mut changed = list.clone();
            changed.set_mode(list.mode(0o640));
            assert_eq!(changed, list, "setting the mode that a list stands for changes it");
        }
    }
}
