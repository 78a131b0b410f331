//! Volumes built, and what comes out of them again.

#![allow(clippy::unwrap_used, reason = "a failing step fails its test")]

mod build;
mod diff;
mod hostile;
mod late;
mod put_back;
mod unpack;
mod volume_source;
