//! A buffer that was used last for some purpose, found again without the table of all buffers.

use super::buffer::{BufferRef, MetaBuffer};
use crate::format::BufferKind;
use std::sync::{Arc, Weak};

/// The last buffer of a purpose, and its place as its user names it. It does not keep the buffer in
/// memory: one that went is read again.
#[derive(Debug)]
pub(crate) struct LastUsed<P> {
    last: Option<(P, Weak<MetaBuffer>)>,
}

impl<P> Default for LastUsed<P> {
    fn default() -> Self {
        Self { last: None }
    }
}

impl<P: Copy + PartialEq> LastUsed<P> {
    /// The buffer at `place`, if it was the last one [remembered](Self::remember), is still the one in
    /// the cache, and is what a reader of `kind` expects.
    #[inline]
    pub(crate) fn find(&self, place: P, kind: BufferKind) -> Option<BufferRef> {
        let (_, buffer) = self.last.as_ref().filter(|(last, _)| *last == place)?;
        buffer.upgrade().filter(|buffer| buffer.use_as(kind))
    }

    /// Remembers a buffer that was verified at this place.
    pub(crate) fn remember(&mut self, place: P, buffer: &BufferRef) {
        self.last = Some((place, Arc::downgrade(buffer)));
    }
}
