//! Sets of tags on the real machine: against a plain model, with waiters, and used wrongly. The
//! programs `loom` and `shuttle` are beside this one: each needs a build of its own.

#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod model;
mod waiting;
mod wrong_use;
