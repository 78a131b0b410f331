//! Programs with more and with fewer rights.

use super::{GROUP, OWNER, STRANGER};
use rustix::fs::{Gid, Uid};
use rustix::thread::{self, CapabilitySet};

/// A program.
pub(super) struct Actor {
    pub(super) name: &'static str,
    user: Option<u32>,
    groups: &'static [u32],
    keeps_set_id: bool,
}

pub(super) static ACTORS: [Actor; 7] = [
    Actor { name: "root", user: None, groups: &[], keeps_set_id: true },
    Actor { name: "root without CAP_FSETID", user: None, groups: &[], keeps_set_id: false },
    Actor { name: "its owner", user: Some(OWNER), groups: &[], keeps_set_id: false },
    Actor {
        name: "its owner in its group",
        user: Some(OWNER),
        groups: &[GROUP],
        keeps_set_id: false,
    },
    Actor { name: "its owner with CAP_FSETID", user: Some(OWNER), groups: &[], keeps_set_id: true },
    Actor { name: "another user", user: Some(STRANGER), groups: &[], keeps_set_id: false },
    Actor {
        name: "another user with CAP_FSETID",
        user: Some(STRANGER),
        groups: &[],
        keeps_set_id: true,
    },
];

impl Actor {
    /// The calling thread has these rights from now on.
    pub(super) fn become_it(&self) {
        let groups: Vec<_> = self.groups.iter().map(|&group| Gid::from_raw(group)).collect();
        thread::set_thread_groups(&groups).unwrap();
        if let Some(user) = self.user {
            thread::set_keep_capabilities(true).unwrap();
            thread::set_thread_gid(Gid::from_raw(user)).unwrap();
            thread::set_thread_uid(Uid::from_raw(user)).unwrap();
        }
        let mut sets = thread::capabilities(None).unwrap();
        if self.user.is_some() {
            sets.effective = CapabilitySet::empty();
        }
        sets.effective.set(CapabilitySet::FSETID, self.keeps_set_id);
        thread::set_capabilities(None, sets).unwrap();
    }
}
