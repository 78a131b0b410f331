//! A decoder that stops where blocks end, and begins again there.

use super::point::{Point, WINDOW};
use crate::disk::invalid;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY,
};
use miniz_oxide::inflate::core::{BlockBoundaryState, DecompressorOxide, decompress};
use std::io;

/// Bytes that are decompressed around: twice what is referred to.
const RING: usize = 2 * WINDOW;

pub(super) struct Inflater {
    state: Box<DecompressorOxide>,
    ring: Vec<u8>,
    /// Where the next byte goes.
    next: usize,
}

/// What a step did.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// Compressed bytes that were used.
    pub(super) packed: usize,
    /// Bytes that came of them.
    pub(super) bytes: usize,
    /// A block has ended, and another follows.
    pub(super) is_boundary: bool,
    /// The member has ended.
    pub(super) is_end: bool,
}

impl Inflater {
    /// At the start of a member.
    pub(super) fn new() -> Self {
        Self { state: Box::default(), ring: vec![0; RING], next: 0 }
    }

    /// At a point that was noted.
    pub(super) fn at(point: &Point) -> Self {
        let mut inflater = Self::new();
        if let Some(window) = &point.window {
            let state = BlockBoundaryState {
                num_bits: point.bits,
                bit_buf: point.bit_buffer,
                ..BlockBoundaryState::default()
            };
            *inflater.state = DecompressorOxide::from_block_boundary_state(&state);
            inflater.ring[..WINDOW].copy_from_slice(&window[..]);
            inflater.next = WINDOW;
        }
        inflater
    }

    /// Goes on with some compressed bytes; none are the end of all.
    pub(super) fn step(&mut self, packed: &[u8]) -> io::Result<Step> {
        let more = if packed.is_empty() { 0 } else { TINFL_FLAG_HAS_MORE_INPUT };
        let flags = TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY | more;
        if self.next == RING {
            self.next = 0;
        }
        let (status, packed, bytes) =
            decompress(&mut self.state, packed, &mut self.ring, self.next, flags);
        self.next += bytes;
        match status {
            TINFLStatus::NeedsMoreInput
            | TINFLStatus::HasMoreOutput
            | TINFLStatus::BlockBoundary
            | TINFLStatus::Done => {}
            TINFLStatus::FailedCannotMakeProgress => {
                return Err(invalid("it ends within a member; is it cut?"));
            }
            _ => return Err(invalid("its deflated data is damaged")),
        }
        let (is_boundary, is_end) =
            (status == TINFLStatus::BlockBoundary, status == TINFLStatus::Done);
        Ok(Step { packed, bytes, is_boundary, is_end })
    }

    /// The bytes of the last step.
    pub(super) fn last(&self, bytes: usize) -> &[u8] {
        &self.ring[self.next - bytes..self.next]
    }

    /// The bits that were read and not used at the end of a block: how many, and they.
    pub(super) fn bits(&self) -> Option<(u8, u8)> {
        let state = self.state.block_boundary_state()?;
        Some((state.num_bits, state.bit_buf))
    }

    /// The last bytes, to which others may refer.
    pub(super) fn window(&self) -> Box<[u8; WINDOW]> {
        let mut window = Box::new([0; WINDOW]);
        for (at, byte) in window.iter_mut().enumerate() {
            *byte = self.ring[(self.next + RING - WINDOW + at) % RING];
        }
        window
    }
}
