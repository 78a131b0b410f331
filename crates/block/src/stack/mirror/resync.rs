//! Filling a leg with the data of the others, while bios go on.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use thiserror::Error;

use super::Mirror;
use super::event::MirrorEvent;
use super::legs::LegState;
use super::shared::Shared;
use crate::bio::{Bio, BlockError};
use crate::device::BlockDevice;
use crate::memory::Buffer;
use crate::plug::submit_directly;
use crate::units::{SECTOR_SIZE, Sector};

/// Bytes copied at a time. Bios that overlap them wait meanwhile.
const REGION: u64 = 1 << 20;

/// How far a leg has been resynchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResyncProgress {
    /// Bytes copied.
    pub done: u64,
    /// Bytes to copy in all.
    pub total: u64,
}

/// Why a leg is not resynchronised. It is stale then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResyncError {
    /// There is no such leg.
    #[error("the mirror has no leg number {0}")]
    NoLeg(usize),
    /// The leg is up to date, or is being filled by another call.
    #[error("leg number {leg} is {}; only a stale one can be resynchronised", word(*state))]
    NotStale {
        /// Its number, from 0.
        leg: usize,
        /// Its state.
        state: LegState,
    },
    /// No leg could be read.
    #[error("no leg holds what is to be copied")]
    Read(#[source] BlockError),
    /// The leg could not be written or flushed.
    #[error("the leg cannot be written")]
    Write(#[source] BlockError),
    /// The leg failed a write that came from above while it was filled.
    #[error("the leg failed a write in the meantime and was dropped again")]
    Dropped,
    /// The caller wanted to stop.
    #[error("resynchronising was stopped")]
    Stopped,
}

fn word(state: LegState) -> &'static str {
    match state {
        LegState::Live => "up to date",
        LegState::Resynchronising => "being resynchronised",
        LegState::Stale => "stale",
    }
}

impl Mirror {
    /// Copies everything to the leg with this number, which is stale, and takes it into use. Sleeps
    /// until that is done; bios go on, and modifying ones reach the leg too. `progress` is called
    /// after every region and may stop the work, which then starts over the next time.
    ///
    /// # Errors
    /// When the leg is not stale, cannot be written, or nothing can be read.
    pub fn resynchronise(
        &self,
        leg: usize,
        progress: &mut dyn FnMut(ResyncProgress) -> ControlFlow<()>,
    ) -> Result<(), ResyncError> {
        let members = &self.shared.members;
        let state = members.state(leg).ok_or(ResyncError::NoLeg(leg))?;
        if !members.change(leg, LegState::Stale, LegState::Resynchronising) {
            return Err(ResyncError::NotStale { leg, state });
        }
        self.fill(leg, progress).inspect_err(|_| {
            members.change(leg, LegState::Resynchronising, LegState::Stale);
        })?;
        self.shared.notify(&MirrorEvent::Resynchronised { leg: self.shared.leg_name(leg) });
        Ok(())
    }

    fn fill(
        &self,
        leg: usize,
        progress: &mut dyn FnMut(ResyncProgress) -> ControlFlow<()>,
    ) -> Result<(), ResyncError> {
        let total = self.capacity().0;
        let step = REGION / SECTOR_SIZE;
        for start in (0..total).step_by(step as usize) {
            let end = total.min(start + step);
            let sectors = Sector(start)..Sector(end);
            let ticket = self.shared.exclude(sectors.clone());
            let copied = self.shared.copy(leg, &sectors);
            self.shared.leave(&ticket);
            copied?;
            let done = end * SECTOR_SIZE;
            if progress(ResyncProgress { done, total: total * SECTOR_SIZE }).is_break() {
                return Err(ResyncError::Stopped);
            }
        }
        let flushed = self.shared.wait_for(Bio::flush(), |bio| {
            submit_directly(self.shared.leg(leg), bio);
        });
        flushed.map_err(ResyncError::Write)?;
        let complete = self.shared.members.change(leg, LegState::Resynchronising, LegState::Live);
        if complete { Ok(()) } else { Err(ResyncError::Dropped) }
    }
}

impl Shared {
    /// Copies `sectors`, from which others are kept away, from a leg that can be read to `leg`.
    fn copy(self: &Arc<Self>, leg: usize, sectors: &Range<Sector>) -> Result<(), ResyncError> {
        if self.members.state(leg) != Some(LegState::Resynchronising) {
            return Err(ResyncError::Dropped);
        }
        // At most a region.
        let length = ((sectors.end.0 - sectors.start.0) * SECTOR_SIZE) as usize;
        let read = Bio::read(sectors.start, Buffer::zeroed(length));
        let buffer = self.wait_for(read, |bio| {
            let mut submit = |leg, bio| submit_directly(self.leg(leg), bio);
            self.start_read(None, bio, &mut submit);
        });
        let write = Bio::write(sectors.start, buffer.map_err(ResyncError::Read)?);
        let written = self.wait_for(write, |bio| submit_directly(self.leg(leg), bio));
        written.map(drop).map_err(ResyncError::Write)
    }

    fn wait_for(&self, bio: Bio, submit: impl FnOnce(Bio)) -> Result<Buffer, BlockError> {
        let (bio, waiter) = bio.waited();
        submit(bio);
        waiter.wait().into_buffer()
    }
}
