//! Programs against the public face.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod attributes;
mod closing;
mod damage;
mod data;
mod deep;
mod discard;
mod edges;
mod examples;
mod handles;
mod kernel;
mod late;
mod listing;
mod names;
mod paths;
mod threads;
mod times;
mod volumes;
mod writers;
