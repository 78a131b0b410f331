//! The shared state of a mirror and its bios in flight.

use std::sync::Arc;

use parking_lot::Mutex;

use super::entry::Entry;
use super::event::MirrorEvent;
use super::legs::Members;
use crate::bio::BlockError;
use crate::device::BlockDevice;
use crate::request::OverlapTracker;
use crate::stack::legs::Legs;

/// The shared state of the mirror and its bios in flight.
pub(super) struct Shared {
    pub(super) legs: Legs,
    pub(super) members: Members,
    /// Bios in flight, and bios that wait for them.
    pub(super) order: Mutex<OverlapTracker<Entry>>,
    pub(super) observer: Mutex<Option<Arc<Observer>>>,
}

pub(super) type Observer = dyn Fn(&MirrorEvent) + Send + Sync;

impl Shared {
    pub(super) fn leg(&self, leg: usize) -> &dyn BlockDevice {
        &*self.legs.devices()[leg]
    }

    /// Name of a leg, to keep.
    pub(super) fn leg_name(&self, leg: usize) -> Arc<str> {
        self.leg(leg).name().into()
    }

    pub(super) fn notify(&self, event: &MirrorEvent) {
        // Called without the lock: an observer may set another.
        let observer = self.observer.lock().clone();
        if let Some(observer) = observer {
            observer(event);
        }
    }

    /// Stops using `leg` because of `error`.
    pub(super) fn drop_leg(&self, leg: usize, error: BlockError) {
        if self.members.drop_leg(leg, &error) {
            self.notify(&MirrorEvent::Dropped { leg: self.leg_name(leg), error });
        }
    }
}
