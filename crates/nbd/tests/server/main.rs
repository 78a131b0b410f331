//! The server, judged by clients of others: libnbd's tools, QEMU's tools, fio; and by rubbish.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod copies;
mod in_memory;
mod panics;
mod piped;
mod raw;
mod rubbish;
mod scripts;
mod served;
mod spliced;
mod stalled;
mod verified;
mod writers;
