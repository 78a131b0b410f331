//! A bitmap with its waiters.

use crate::available::Available;
use crate::bitmap::Bitmap;
use crate::demand::Demand;
use crate::hold_check::HoldCheck;
use crate::policy::{Policy, Wakes};
use crate::sync::{self, AtomicU32, Mutex, Ordering};
use crate::tag_cache::Gate;
use crate::users::Users;
use crate::wait::Queues;
use crate::wake_batch::BatchRule;

/// Tags numbered from zero, their waiters, and the policy between the two.
#[derive(Debug)]
pub(crate) struct Pool {
    bitmap: Bitmap,
    queues: Queues,
    policy: Box<dyn Policy>,
    gate: Gate,
    hold_check: HoldCheck,
    batch: AtomicU32,
    rule: BatchRule,
    /// Present with fair sharing.
    users: Option<Users>,
    /// Held while the number of users changes, for the wake batch follows it.
    changes: Mutex<()>,
}

/// The options of a pool, apart from its waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolShape {
    /// Tags.
    pub(crate) depth: u32,
    /// Wait queues.
    pub(crate) queues: usize,
    /// Whether users have fair shares.
    pub(crate) shared: bool,
    /// Whether callers may keep tags in their tag caches.
    pub(crate) tag_caches: bool,
}

impl Pool {
    pub(crate) fn new(shape: &PoolShape, rule: BatchRule, policy: Box<dyn Policy>) -> Self {
        let PoolShape { depth, queues, shared, tag_caches } = *shape;
        let batch = rule.batch(&*policy, depth, 1);
        Self {
            bitmap: Bitmap::new(depth),
            queues: Queues::new(queues),
            policy,
            gate: Gate::new(tag_caches),
            hold_check: HoldCheck::new(depth),
            batch: AtomicU32::new(batch),
            rule,
            users: shared.then(|| Users::new(depth)),
            changes: Mutex::new(()),
        }
    }

    #[inline(always)]
    pub(crate) fn bitmap(&self) -> &Bitmap {
        &self.bitmap
    }

    #[inline(always)]
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    #[inline(always)]
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    #[inline(always)]
    pub(crate) fn hold_check(&self) -> &HoldCheck {
        &self.hold_check
    }

    pub(crate) fn users(&self) -> Option<&Users> {
        self.users.as_ref()
    }

    pub(crate) fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    pub(crate) fn batch(&self) -> u32 {
        self.batch.load(Ordering::Relaxed)
    }

    /// Takes a tag, if the demand's share has room.
    pub(crate) fn find(&self, demand: Demand, hint: u32) -> Option<u32> {
        if self.share_left(demand) == 0 {
            return None;
        }
        let bit = self.bitmap.find(hint)?;
        if let (Some(users), Some(user)) = (&self.users, demand.user) {
            users.took(user, bit, 1);
        }
        Some(bit)
    }

    /// Takes up to `count` tags of one word: the number of bit zero, and a mask.
    pub(crate) fn find_run(&self, demand: Demand, hint: u32, count: u32) -> (u32, u64) {
        let count = count.min(self.share_left(demand));
        let (base, mask) = self.bitmap.find_run(hint, count);
        if let (Some(users), Some(user)) = (&self.users, demand.user) {
            users.took(user, base, mask);
        }
        (base, mask)
    }

    /// The rest of the share of the demand's user, which is active from now on.
    fn share_left(&self, demand: Demand) -> u32 {
        let (Some(users), Some(user)) = (&self.users, demand.user) else { return u32::MAX };
        if !users.is_active(user) {
            self.set_active(user, true);
        }
        users.left(user, self.bitmap.depth())
    }

    /// What there is to be had now.
    pub(crate) fn available(&self) -> Available<'_> {
        Available { bitmap: &self.bitmap, users: self.users.as_ref() }
    }

    /// Puts tags of one word into the bitmap: bit zero of `mask` is bit `first` of the pool. One that
    /// the pool does not have is ignored.
    #[inline]
    pub(crate) fn put(&self, first: u32, mask: u64) {
        let layout = self.bitmap.layout();
        let Some(word) = self.bitmap.words().get((first >> layout.shift) as usize) else { return };
        if let Some(users) = &self.users {
            users.puts(first, mask);
        }
        word.clear(mask << (first & (layout.bits() - 1)));
        self.look_for_waiters(mask.count_ones());
    }

    /// The second half of a put: wakes waiters, if there are any.
    #[inline(always)]
    pub(crate) fn look_for_waiters(&self, freed: u32) {
        sync::barrier_after_clear();
        if self.queues.waiting() != 0 {
            self.wake(freed);
        }
    }

    /// Puts the tags of tag caches, because a caller found no tag without them. Returns whether it
    /// was worth looking again.
    #[cold]
    pub(crate) fn close_gate(&self) -> bool {
        #[cfg(loom)]
        if sync::sabotage::leaves_out(sync::sabotage::Part::Closing) {
            return false;
        }
        // Each tag counts as a put of its own. The gate's lock is free again: waiters that are
        // woken may come back here.
        let Some(emptied) = self.gate.close() else { return false };
        for bit in emptied {
            self.put(bit, 1);
        }
        true
    }

    /// Lets callers use their tag caches, after a time without waiters.
    #[cold]
    pub(crate) fn open_gate(&self) {
        if !self.gate.open(|| self.queues.waiting() != 0) {
            self.close_gate();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self, freed: u32) {
        self.policy.freed(&self.wakes(), freed);
    }

    /// A waiter has a tag. The policy may have left others asleep while it was on its way.
    pub(crate) fn look_again(&self) {
        #[cfg(loom)]
        if sync::sabotage::leaves_out(sync::sabotage::Part::LookingAgain) {
            return;
        }
        if self.queues.waiting() != 0 {
            self.policy.look_again(&self.wakes());
        }
    }

    fn wakes(&self) -> Wakes<'_> {
        Wakes { queues: &self.queues, available: self.available(), batch: self.batch() }
    }

    /// A user begins or ceases to share. Shares grow when one ceases: waiters that were held up by
    /// their own share look again.
    pub(crate) fn set_active(&self, user: u32, active: bool) {
        let Some(users) = &self.users else { return };
        let changes = self.changes.lock();
        let changed = users.set_active(user, active);
        if changed {
            self.follow(users.active());
        }
        drop(changes);
        if changed && !active {
            self.wake_everybody();
        }
    }

    /// Computes the wake batch anew. A smaller one needs no wake-up: sleepers saw more tags busy
    /// than it takes. A larger one goes with a wake-up of all waiters, so none counts on the old
    /// one.
    fn follow(&self, users: u32) {
        let batch = self.rule.batch(&*self.policy, self.bitmap.depth(), users);
        self.batch.store(batch, Ordering::Relaxed);
    }

    /// Wakes all waiters, after a change that may help any of them.
    pub(crate) fn wake_everybody(&self) {
        sync::barrier_after_change();
        if self.queues.waiting() != 0 {
            self.queues.wake_everybody();
        }
    }
}
