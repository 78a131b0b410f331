//! The server, judged by clients of others: libnbd's tools, QEMU's tools, fio; and by rubbish.

mod copies;
mod rubbish;
mod served;
mod stalled;
mod verified;
