//! The block that a decoder is fed: a sound one with patches, or any bytes at all.

use crate::device::apply;
use crate::input::{Input, Patches};
use crate::sample::{Content, Sample, samples};
use undercroft_xfs::Geometry;
use undercroft_xfs::format::{BufferKind, Features};

/// A bit of the first byte of the input: the volume is said to be a version 4 one.
const V4: u8 = 0x80;
/// A bit of the first byte of the input: the block starts as zeros.
const BLANK: u8 = 0x40;

/// A block and the volume that it is said to be from.
pub(crate) struct FuzzedBlock {
    pub(crate) geometry: Geometry,
    pub(crate) bytes: Vec<u8>,
}

/// Makes the block of `kind` that an input asks for. Its length is right for the kind.
pub(crate) fn block(kind: BufferKind, mut input: Input<'_>) -> FuzzedBlock {
    let choice = input.byte();
    let samples = samples();
    let sample = &samples[usize::from(choice & 0x3f) % samples.len()];
    let mut bytes = sound(sample, kind, input.word());
    if choice & BLANK != 0 {
        bytes.fill(0);
    }
    for patch in Patches::new(input) {
        apply(sample, &mut bytes, patch.offset, &patch.change);
    }
    let mut geometry = sample.geometry.clone();
    if choice & V4 != 0 {
        geometry.features = Features::default();
    }
    FuzzedBlock { geometry, bytes }
}

/// A sound block of `kind`; zeros if the volume has none.
fn sound(sample: &Sample, kind: BufferKind, index: u16) -> Vec<u8> {
    let wanted = Content::Buffer(kind);
    let all: Vec<_> = sample.pieces.iter().filter(|piece| piece.content == wanted).collect();
    if !all.is_empty() {
        return all[usize::from(index) % all.len()].bytes.clone();
    }
    let geometry = &sample.geometry;
    let len = match kind {
        BufferKind::DirBlock
        | BufferKind::DirData
        | BufferKind::DirFree
        | BufferKind::DirLeaf1
        | BufferKind::DirLeafN => geometry.dir_block_size(),
        _ => geometry.block_size(),
    };
    vec![0; len]
}
