//! Random interleavings of larger cases, and shared writes counted; run with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p undercroft-tags --release --test shuttle`.

#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod waiters;
mod writes;
