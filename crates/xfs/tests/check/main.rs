//! What reads whole volumes: the check and the layout, against other judges, on sound volumes, on
//! damaged ones, on slow devices.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod damage;
mod engine;
mod fields;
mod formats;
mod frag;
mod mutations;
mod slow_reads;
mod times;
