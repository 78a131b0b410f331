//! Changes of a volume as a whole: its size, its label, its UUID.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../journal/crash.rs"]
#[allow(dead_code, reason = "the tests of the journal use more of it")]
mod crash;
mod cuts;
mod grow;
mod identity;
#[path = "../allocator/judged.rs"]
mod judged;
#[allow(dead_code, reason = "the soak of cuts uses more of it")]
mod random;
mod shrink;
mod shrink_cuts;
mod shrink_inodes;
mod shrink_judge;
mod shrink_moves;
mod shrink_random;
mod shrink_staging;
#[path = "../journal/tree.rs"]
mod tree;
#[path = "../journal/work.rs"]
#[allow(dead_code, reason = "the tests of the journal use more of it")]
mod work;
