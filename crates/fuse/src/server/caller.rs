//! The program that asks, and its rights.
//!
//! A request carries a user, a group and a thread. Whether a change of a file's content leaves setuid
//! and setgid bits is told with writes alone, and not with the other requests that change content; so
//! the system is asked about the thread, which waits for the answer.

use std::fs;
use undercroft_fs::Writer;

/// The number of the capability CAP_FSETID.
const SET_ID: u32 = 4;

/// The map of users of the first name space: only there is a capability one for any file.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// The program that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Number of the thread; 0 if it is in a name space of its own.
    pub(crate) thread: u32,
    /// It is taken for root, whoever it is.
    pub(crate) is_fake_root: bool,
}

impl Caller {
    /// Root, with all rights.
    pub(crate) const FAKE_ROOT: Self = Self { uid: 0, gid: 0, thread: 0, is_fake_root: true };

    /// What it may leave to a file of this group. What cannot be found out it may not.
    pub(crate) fn writer(&self, group: u32) -> Writer {
        if self.is_fake_root {
            return Writer { keeps_set_id: true, is_in_group: true };
        }
        let about = |what: &str| fs::read_to_string(format!("/proc/{}/{what}", self.thread));
        let (Ok(status), Ok(users)) = (about("status"), about("uid_map")) else {
            return Writer { keeps_set_id: false, is_in_group: group == self.gid };
        };
        self.judge(&status, &users, group)
    }

    fn judge(&self, status: &str, users: &str, group: u32) -> Writer {
        let fields = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().split_ascii_whitespace()
        };
        let number = |text: &str| text.parse::<u32>().ok();
        // Real, effective, saved, and that of accesses. A thread of other owners is another one.
        let owner = |name| fields(name).nth(3).and_then(number);
        let is_same = owner("Uid") == Some(self.uid) && owner("Gid") == Some(self.gid);
        let effective = fields("CapEff").next().and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let may_set_id = effective.is_some_and(|mask| mask >> SET_ID & 1 != 0);
        let is_first = users.split_ascii_whitespace().eq(ALL_USERS);
        let is_member = fields("Groups").any(|member| number(member) == Some(group));
        Writer {
            keeps_set_id: is_same && may_set_id && is_first,
            is_in_group: group == self.gid || is_same && is_member,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "         0          0 4294967295\n";

    fn status(owner: u32, capabilities: &str) -> String {
        format!(
            "Name:\tcp\nUid:\t1\t2\t3\t{owner}\nGid:\t5\t5\t5\t5\nGroups:\t7 8 \nCapPrm:\t0\n\
             CapEff:\t{capabilities}\n"
        )
    }

    #[test]
    fn rights_are_those_of_the_thread_that_asks() {
        let caller = Caller { uid: 0, gid: 5, thread: 1, is_fake_root: false };
        let master = Writer { keeps_set_id: true, is_in_group: true };
        assert_eq!(caller.judge(&status(0, "000001ffffffffff"), FIRST, 7), master);
        let strict = caller.judge(&status(0, "000001ffffffffef"), FIRST, 9);
        assert_eq!(strict, Writer::default());
        assert!(caller.judge(&status(0, "0"), FIRST, 5).is_in_group);
        // Another thread has the number now, or it is root of its own name space alone.
        assert_eq!(caller.judge(&status(9, "000001ffffffffff"), FIRST, 7), Writer::default());
        let inner = caller.judge(&status(0, "000001ffffffffff"), "0 1000 1\n", 7);
        assert_eq!(inner, Writer { keeps_set_id: false, is_in_group: true });
        assert_eq!(caller.judge("", "", 7), Writer::default());
    }
}
