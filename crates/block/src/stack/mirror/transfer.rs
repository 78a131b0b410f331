//! The way of a bio through a mirror.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::entry::{Entry, Ticket};
use super::event::MirrorEvent;
use super::legs::LegSet;
use super::shared::Shared;
use crate::bio::{Bio, BlockError, Operation};
use crate::plug::submit_directly;
use crate::units::{SECTOR_SIZE, Sector};

/// Hands a bio to a leg.
pub(super) type Submit<'s> = &'s mut dyn FnMut(usize, Bio);

impl Shared {
    /// Starts an entry that nothing holds back.
    pub(super) fn start(self: &Arc<Self>, entry: Entry, submit: Submit<'_>) {
        let ticket = Ticket::of(&entry);
        if entry.excludes {
            entry.bio.succeed();
        } else if entry.bio.operation() == Operation::Read {
            self.start_read(Some(ticket), entry.bio, submit);
        } else {
            self.start_fan_out(Some(ticket), entry.bio, submit);
        }
    }

    /// Keeps bios away from `sectors` when this returns, until the ticket is given back by
    /// [`leave`](Self::leave). Sleeps until bios in flight there have been answered.
    pub(super) fn exclude(self: &Arc<Self>, sectors: Range<Sector>) -> Ticket {
        let length = (sectors.end.0 - sectors.start.0) * SECTOR_SIZE;
        let (bio, waiter) = Bio::write_zeroes(sectors.start, length).waited();
        let operation = bio.operation();
        let mut order = self.order.lock();
        let ticket = Ticket { operation, sectors, number: order.next_number() };
        let entered = order.enter(Entry { excludes: true, ..Entry::new(bio) });
        drop(order);
        if let Some(entry) = entered {
            entry.bio.succeed();
        }
        // Only ever answered by being let in.
        drop(waiter.wait());
        ticket
    }

    /// Takes an entry out of the order and starts the bios that it held back.
    pub(super) fn leave(self: &Arc<Self>, ticket: &Ticket) {
        let mut released = Vec::new();
        self.order.lock().leave(ticket, &mut released);
        for entry in released {
            self.start(entry, &mut |leg, bio| submit_directly(self.leg(leg), bio));
        }
    }

    /// Reads from the best leg, and on from others if that fails.
    pub(super) fn start_read(
        self: &Arc<Self>,
        ticket: Option<Ticket>,
        bio: Bio,
        submit: Submit<'_>,
    ) {
        // There always is a live leg.
        let leg = self.members.choose(self.members.live(), bio.sector()).unwrap_or(0);
        self.read_from(leg, LegSet::default(), ticket, bio, submit);
    }

    /// Reads from `leg`, and if that fails from legs that are not in `tried`.
    fn read_from(
        self: &Arc<Self>,
        leg: usize,
        tried: LegSet,
        ticket: Option<Ticket>,
        mut bio: Bio,
        submit: Submit<'_>,
    ) {
        let (sector, length) = (bio.sector(), bio.length());
        let tried = tried.union(LegSet::of(leg));
        self.members.read_started(leg, length, Sector(sector.0 + length / SECTOR_SIZE));
        let shared = Arc::clone(self);
        bio.intercept(move |mut bio, result| {
            let members = &shared.members;
            members.read_ended(leg, length, result.is_ok());
            if let Err(error) = &result
                && let Some(other) = members.choose(members.live().without(tried), sector)
            {
                let (leg, error) = (shared.leg_name(leg), error.clone());
                shared.notify(&MirrorEvent::ReadFailed { leg, error });
                bio.remap(sector);
                bio.renew_memory();
                let mut submit = |leg, bio| submit_directly(shared.leg(leg), bio);
                return shared.read_from(other, tried, ticket, bio, &mut submit);
            }
            bio.answer(result);
            shared.leave_with(ticket.as_ref());
        });
        submit(leg, bio);
    }

    /// Sends what modifies, or a flush, to every leg that is written.
    pub(super) fn start_fan_out(
        self: &Arc<Self>,
        ticket: Option<Ticket>,
        mut bio: Bio,
        submit: Submit<'_>,
    ) {
        // Looked at after the bio entered the order: a leg that is resynchronised from now on
        // either gets this bio, or copies these sectors after it.
        let legs = self.members.written();
        if let (1, Some(only)) = (legs.len(), legs.iter().next()) {
            let shared = Arc::clone(self);
            bio.intercept(move |bio, result| {
                bio.answer(result);
                shared.leave_with(ticket.as_ref());
            });
            return submit(only, bio);
        }
        let copies: SmallVec<[_; 4]> = legs.iter().map(|leg| (leg, bio.copy())).collect();
        let job = Arc::new(FanOut {
            shared: Arc::clone(self),
            ticket,
            legs,
            bio: Mutex::new(Some(bio)),
            outstanding: AtomicUsize::new(copies.len()),
            failed: Mutex::default(),
        });
        for (leg, mut copy) in copies {
            let job = Arc::clone(&job);
            copy.intercept(move |_, result| job.answered(leg, result));
            submit(leg, copy);
        }
    }

    fn leave_with(self: &Arc<Self>, ticket: Option<&Ticket>) {
        if let Some(ticket) = ticket {
            self.leave(ticket);
        }
    }
}

/// A bio that was sent to several legs.
struct FanOut {
    shared: Arc<Shared>,
    ticket: Option<Ticket>,
    legs: LegSet,
    /// Taken when it is answered.
    bio: Mutex<Option<Bio>>,
    outstanding: AtomicUsize,
    failed: Mutex<SmallVec<[(usize, BlockError); 1]>>,
}

impl FanOut {
    fn answered(&self, leg: usize, result: Result<(), BlockError>) {
        if let Err(error) = result {
            self.failed.lock().push((leg, error));
        }
        // Release and acquire: the last one sees the failures of the others.
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            let failed = std::mem::take(&mut *self.failed.lock());
            let bio = self.bio.lock().take();
            let result = self.judge(failed);
            if let Some(bio) = bio {
                bio.answer(result);
            }
            self.shared.leave_with(self.ticket.as_ref());
        }
    }

    /// Drops the legs that failed, if others did it.
    fn judge(&self, failed: SmallVec<[(usize, BlockError); 1]>) -> Result<(), BlockError> {
        let Some((_, first)) = failed.first() else { return Ok(()) };
        let first = first.clone();
        let set = failed.iter().map(|(leg, _)| LegSet::of(*leg));
        let done = self.legs.without(set.fold(LegSet::default(), LegSet::union));
        // A leg that did it counts only while it can be read: one that failed something else in the
        // meantime is gone, and this with it.
        if done.intersection(self.shared.members.live()).is_empty() {
            return Err(first);
        }
        for (leg, error) in failed {
            self.shared.drop_leg(leg, error);
        }
        Ok(())
    }
}
