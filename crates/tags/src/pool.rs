//! A bitmap with its waiters: one for ordinary tags, one for reserved tags.

use crate::bitmap::Bitmap;
use crate::demand::Demand;
use crate::policy::{Policy, Wakes};
use crate::sync::{self, AtomicU32, Mutex, Ordering};
use crate::users::Users;
use crate::wait::Queues;
use crate::wake_batch::BatchRule;

/// Tags numbered from zero, whoever waits for them, and the policy between the two.
#[derive(Debug)]
pub(crate) struct Pool {
    bitmap: Bitmap,
    queues: Queues,
    policy: Box<dyn Policy>,
    batch: AtomicU32,
    rule: BatchRule,
    /// Present with fair sharing.
    users: Option<Users>,
    /// Held while depth or number of users change, for the wake batch follows both.
    changes: Mutex<()>,
}

impl Pool {
    pub(crate) fn new(capacity: u32, depth: u32, rule: BatchRule, shared: bool) -> Self {
        let batch = rule.batch(depth, 1);
        Self {
            bitmap: Bitmap::new(capacity, depth),
            queues: Queues::new(rule.queues),
            policy: rule.policy.make(rule.queues, batch),
            batch: AtomicU32::new(batch),
            rule,
            users: shared.then(|| Users::new(capacity)),
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

    pub(crate) fn users(&self) -> Option<&Users> {
        self.users.as_ref()
    }

    pub(crate) fn rule(&self) -> &BatchRule {
        &self.rule
    }

    pub(crate) fn batch(&self) -> u32 {
        self.batch.load(Ordering::Relaxed)
    }

    /// Takes a tag, if the demand's limits allow one.
    pub(crate) fn find(&self, demand: Demand, hint: u32, from_bit: bool) -> Option<u32> {
        if !demand.is_limited() {
            return self.bitmap.find(hint, self.bitmap.reach(None), from_bit);
        }
        if self.share_left(demand) == 0 {
            return None;
        }
        let reach = self.bitmap.reach(demand.shallow);
        let bit = self.bitmap.find(hint, reach, from_bit)?;
        if let (Some(users), Some(user)) = (&self.users, demand.user) {
            users.took(user, bit, 1);
        }
        Some(bit)
    }

    /// Takes up to `count` tags of one word: the number of bit zero, and a mask.
    pub(crate) fn find_run(&self, demand: Demand, hint: u32, count: u32) -> (u32, u64) {
        let count = count.min(self.share_left(demand));
        let reach = self.bitmap.reach(demand.shallow);
        let (base, mask) = self.bitmap.find_run(hint, reach, count);
        if let (Some(users), Some(user)) = (&self.users, demand.user) {
            users.took(user, base, mask);
        }
        (base, mask)
    }

    /// What is left of the share of the demand's user, who is active from now on.
    fn share_left(&self, demand: Demand) -> u32 {
        let (Some(users), Some(user)) = (&self.users, demand.user) else { return u32::MAX };
        if !users.is_active(user) {
            self.set_active(user, true);
        }
        users.left(user, self.bitmap.depth())
    }

    /// Whether a waiter with this demand would find a tag now. One without limits can always use a
    /// wake-up: it is given for a tag that was put.
    pub(crate) fn could_use(&self, demand: Demand) -> bool {
        let share = match (&self.users, demand.user) {
            (Some(users), Some(user)) => users.left(user, self.bitmap.depth()) > 0,
            _ => true,
        };
        share
            && (demand.shallow.is_none() || self.bitmap.has_free(self.bitmap.reach(demand.shallow)))
    }

    /// Puts the tags in `mask` of the word with number `index`; a word that does not exist is ignored.
    #[inline(always)]
    pub(crate) fn put(&self, index: usize, mask: u64) {
        let Some(word) = self.bitmap.words().get(index) else {
            debug_assert!(false, "tags of word {index} are put to a set that has no such word");
            return;
        };
        debug_assert!(
            word.busy() & mask == mask,
            "tags {:#x} of word {index} (tag {} and on) are put but nobody holds them: put twice, \
             or never got",
            mask & !word.busy(),
            index << self.bitmap.layout().shift
        );
        if let Some(users) = &self.users {
            users.puts((index << self.bitmap.layout().shift) as u32, mask);
        }
        word.clear(mask);
        self.look_for_waiters(mask);
    }

    /// The second half of a put: wakes waiters, if there are any.
    #[inline(always)]
    pub(crate) fn look_for_waiters(&self, mask: u64) {
        sync::barrier_after_clear();
        if self.queues.waiting() != 0 {
            self.wake(mask.count_ones());
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self, freed: u32) {
        let wakes = Wakes { queues: &self.queues, pool: self, batch: self.batch() };
        self.policy.freed(&wakes, freed);
    }

    /// Changes the depth and wakes everybody.
    pub(crate) fn resize(&self, depth: u32) {
        let changes = self.changes.lock();
        self.bitmap.set_depth(depth);
        self.follow(depth);
        drop(changes);
        self.wake_everybody();
    }

    /// A user begins or ceases to share. Shares grow when one ceases: those who waited for their own
    /// share's sake look again.
    pub(crate) fn set_active(&self, user: u32, active: bool) {
        let Some(users) = &self.users else { return };
        let changes = self.changes.lock();
        let changed = users.set_active(user, active);
        if changed {
            self.follow(self.bitmap.depth());
        }
        drop(changes);
        if changed && !active {
            self.wake_everybody();
        }
    }

    /// Computes the wake batch anew. A smaller one needs no wake-up: sleepers saw more tags busy than
    /// it takes. A larger one goes with a wake-up of everybody, so nobody counts on the old one.
    fn follow(&self, depth: u32) {
        let users = self.users.as_ref().map_or(1, Users::active);
        self.batch.store(self.rule.batch(depth, users), Ordering::Relaxed);
    }

    /// Wakes everybody, after a change that may help any of them.
    pub(crate) fn wake_everybody(&self) {
        sync::barrier_after_change();
        if self.queues.waiting() != 0 {
            self.queues.wake_everybody();
        }
    }
}
