//! The judges judged, on trees and on the kernel's own XFS.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod load;
mod mounts;
mod tree;
