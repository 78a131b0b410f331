//! What a block seems to be, by its magic number.

use undercroft_xfs_format::{BufferKind, Header, TreeKind, bytes};

/// The header that a block of version 5 seems to have.
pub(crate) fn of_block(block: &[u8]) -> Option<(BufferKind, Header)> {
    let kind = match (bytes::be32(block, 0), bytes::be16(block, 8)) {
        (_, 0x3bee) => BufferKind::AttrLeaf,
        (_, 0x3ebe) => BufferKind::DaNode,
        (_, 0x3df1) => BufferKind::DirLeaf1,
        (_, 0x3dff) => BufferKind::DirLeafN,
        (magic, _) => match &magic.to_be_bytes() {
            b"XDB3" => BufferKind::DirBlock,
            b"XDD3" => BufferKind::DirData,
            b"XDF3" => BufferKind::DirFree,
            b"XSLM" => BufferKind::Symlink,
            b"XARM" => BufferKind::AttrRemote,
            _ => BufferKind::Tree(tree(magic)?),
        },
    };
    Header::of(kind).map(|header| (kind, header))
}

/// The tree of a magic number.
fn tree(magic: u32) -> Option<TreeKind> {
    let all = [
        TreeKind::Bnobt,
        TreeKind::Cntbt,
        TreeKind::Inobt,
        TreeKind::Finobt,
        TreeKind::Rmapbt,
        TreeKind::Refcountbt,
        TreeKind::Bmbt,
    ];
    all.into_iter().find(|tree| tree.magic_v5() == magic)
}
