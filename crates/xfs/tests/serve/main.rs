//! Eight threads use one volume as a server does.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod bytes;
mod crash;
