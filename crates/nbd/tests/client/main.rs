//! The client against servers of others: nbdkit and qemu-nbd.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod abilities;
mod breaks;
mod conformance;
mod liars;
mod limits;
mod tls;

use std::sync::Arc;

use undercroft_block::BlockDevice;
use undercroft_nbd::client::{self, NbdDevice};
use undercroft_nbd::protocol::Uri;

/// Opens an export for change.
fn open(uri: &str) -> NbdDevice {
    client::open(&Uri::parse(uri).unwrap(), false, None).unwrap()
}

/// The same, as any device.
fn device(uri: &str) -> Arc<dyn BlockDevice> {
    Arc::new(open(uri))
}

/// An error and its reasons, as people read them.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
