//! Fair shares: how many tags each user of a shared set may hold.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32 as Plain;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, Mutex, Ordering};

/// A user may always hold this many.
const LEAST_SHARE: u32 = 4;
/// Users in the first table; each further one is twice as long.
const FIRST_TABLE: u32 = 8;
/// Tables, enough for every `u32`.
const TABLES: usize = 30;

/// One user.
#[derive(Debug)]
struct State {
    in_flight: AtomicU32,
    /// 1 while the user counts in the shares.
    active: AtomicU32,
}

/// The users of one pool. A user is a number; tables of users are made as they are needed and never
/// move, so a put finds the holder of a tag without a lock.
#[derive(Debug)]
pub(crate) struct Users {
    tables: [OnceLock<Box<[CachePadded<State>]>>; TABLES],
    active: AtomicU32,
    /// Per tag, its holder's number plus one, zero without one. Written by the holder of the tag
    /// only; taking and clearing the tag's bit order the accesses.
    holders: Box<[Plain]>,
    register: Mutex<Register>,
}

#[derive(Debug, Default)]
struct Register {
    made: u32,
    /// Users that are gone; their numbers are used again when they hold no tag any more.
    gone: Vec<u32>,
}

impl Users {
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            tables: [const { OnceLock::new() }; TABLES],
            active: AtomicU32::new(0),
            holders: (0..depth).map(|_| Plain::new(0)).collect(),
            register: Mutex::new(Register::default()),
        }
    }

    /// A new user, not yet active.
    pub(crate) fn enter(&self) -> u32 {
        let mut register = self.register.lock();
        let free = register.gone.iter().position(|user| self.in_flight(*user) == 0);
        if let Some(free) = free {
            return register.gone.swap_remove(free);
        }
        let user = register.made;
        register.made += 1;
        let (table, _) = place(user);
        self.tables[table].get_or_init(|| {
            (0..FIRST_TABLE << table)
                .map(|_| {
                    CachePadded::new(State {
                        in_flight: AtomicU32::new(0),
                        active: AtomicU32::new(0),
                    })
                })
                .collect()
        });
        user
    }

    /// A user goes; it may still hold tags.
    pub(crate) fn leave(&self, user: u32) {
        self.register.lock().gone.push(user);
    }

    fn state(&self, user: u32) -> &State {
        let (table, index) = place(user);
        &self.tables[table].get().expect("a user's table is made before its number is given out")
            [index]
    }

    pub(crate) fn in_flight(&self, user: u32) -> u32 {
        self.state(user).in_flight.load(Ordering::Relaxed)
    }

    /// Number of active users.
    pub(crate) fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_active(&self, user: u32) -> bool {
        self.state(user).active.load(Ordering::Relaxed) == 1
    }

    /// Changes whether a user counts; returns whether that was news. Under the pool's lock of changes.
    pub(crate) fn set_active(&self, user: u32, active: bool) -> bool {
        let state = self.state(user);
        if (state.active.load(Ordering::Relaxed) == 1) == active {
            return false;
        }
        state.active.store(u32::from(active), Ordering::Relaxed);
        let users = self.active.load(Ordering::Relaxed);
        self.active.store(if active { users + 1 } else { users - 1 }, Ordering::Relaxed);
        true
    }

    /// How many tags each active user may hold.
    pub(crate) fn share(&self, depth: u32) -> u32 {
        if depth == 1 { 1 } else { depth.div_ceil(self.active().max(1)).max(LEAST_SHARE) }
    }

    /// The rest of a user's share. Callers of one user that look at the same moment may exceed it
    /// by one tag each: a check that counts first would make others sleep for tags never taken.
    pub(crate) fn left(&self, user: u32, depth: u32) -> u32 {
        self.share(depth).saturating_sub(self.in_flight(user))
    }

    /// The user has taken the tags in `mask`, the first of which is `base`.
    pub(crate) fn took(&self, user: u32, base: u32, mask: u64) {
        self.state(user).in_flight.fetch_add(mask.count_ones(), Ordering::Relaxed);
        for bit in bits(mask) {
            if let Some(holder) = self.holders.get((base + bit) as usize) {
                holder.store(user + 1, Ordering::Relaxed);
            }
        }
    }

    /// The tags in `mask` are about to be put: their holders have fewer. Before the bits are cleared
    /// and with `SeqCst`, so that this is seen by waiters as the cleared bits are (invariant I1).
    pub(crate) fn puts(&self, base: u32, mask: u64) {
        for bit in bits(mask) {
            let Some(holder) = self.holders.get((base + bit) as usize) else { continue };
            let user = holder.load(Ordering::Relaxed);
            if user != 0 {
                holder.store(0, Ordering::Relaxed);
                self.state(user - 1).in_flight.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

/// Table and index of a user.
fn place(user: u32) -> (usize, usize) {
    let table = (user / FIRST_TABLE + 1).ilog2();
    let before = ((1 << table) - 1) * FIRST_TABLE;
    (table as usize, (user - before) as usize)
}

/// The numbers of the bits in `mask`.
fn bits(mask: u64) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let bit = rest.trailing_zeros();
        rest &= rest - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_its_place() {
        let mut expected = (0, 0);
        for user in 0..1000 {
            assert_eq!(place(user), expected);
            expected.1 += 1;
            if expected.1 == (FIRST_TABLE as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(place(u32::MAX).0 < TABLES);
    }
}
