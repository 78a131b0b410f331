//! The way of a bio down to leaves.

use std::sync::Arc;

use super::block_device::{Below, BlockDevice, Layer};
use super::request_queue::RequestQueue;
use crate::bio::Bio;

/// Maps `bio` down from `device`, level by level, and gives the bios that reach leaves to `stage`.
///
/// What one bio becomes goes down to the leaves before the next bio of the level above it, so
/// order is kept and the list stays as short as one path through the stack.
#[inline]
pub(crate) fn route<'d>(
    mut device: &'d dyn BlockDevice,
    mut bio: Bio,
    mut stage: impl FnMut(&'d Arc<dyn RequestQueue>, Bio),
) {
    let mut stacked = match device.layer() {
        Layer::Leaf(queue) => return stage(queue, bio),
        Layer::Stacked(stacked) => stacked,
    };
    let mut below = Below::default();
    // As long as one bio becomes one, there is no list.
    loop {
        stacked.map(bio, &mut below);
        if !below.others.is_empty() {
            return route_all(below, &mut stage);
        }
        let Some(only) = below.first.take() else { return };
        (device, bio) = only;
        match device.layer() {
            Layer::Leaf(queue) => return stage(queue, bio),
            Layer::Stacked(next) => stacked = next,
        }
    }
}

/// The same for all that one bio became.
#[cold]
fn route_all<'d>(mut below: Below<'d>, stage: &mut dyn FnMut(&'d Arc<dyn RequestQueue>, Bio)) {
    let mut work = Vec::new();
    below.drain_into(&mut work);
    while let Some((device, bio)) = work.pop() {
        match device.layer() {
            Layer::Leaf(queue) => stage(queue, bio),
            Layer::Stacked(stacked) => {
                stacked.map(bio, &mut below);
                below.drain_into(&mut work);
            }
        }
    }
}
