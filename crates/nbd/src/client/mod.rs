//! The client: an export of a server as a device.
//!
//! ```text
//! threads that wait --> flights --> links (one connection each) --> server
//!        ^                ^                                           |
//!        |                +-- keeper (breaks, limits)                 |
//!      seats <-- one of them, or a watcher, receives for all <--------+
//! ```
//!
//! A thread that submits sends by itself, and one that waits for an answer receives: its own, and
//! those of others, until it has its own. `port` says whose turn it is. Nothing here waits for room
//! in a socket, so a thread that receives may send, too.
//!
//! Requests are found by their cookies. What is promised when a connection breaks is in
//! `docs/nbd.md`, and why in `docs/decisions/nbd.md`.

mod answer;
mod attend;
mod channel;
mod copied_bytes;
mod device;
mod error;
mod facts;
mod flight;
mod handshake;
mod keeper;
mod kept;
mod link;
mod options;
mod own_flush;
mod passage;
mod port;
mod reason;
mod receiver;
mod seat;
mod session;
mod socket;
mod spare;
mod state;
mod tls;
mod zeroes;

use std::error::Error;
use std::sync::Arc;

use undercroft_block::BlockDevice;
use undercroft_block::stack::{NetworkLeaf, NetworkOptions, register_network};

pub use device::{NbdDevice, NbdDriver, NbdQueue, list, open};
pub use error::ClientError;
pub use handshake::ExportInfo;
pub use options::ClientOptions;

use crate::protocol::Uri;

/// Makes URIs usable wherever a stack of devices is described, for the whole process.
pub fn register() {
    register_network(open_leaf);
}

/// Checks the URI of `leaf` without looking for its server.
///
/// # Errors
/// It is wrong, or has a parameter that is.
pub fn check(leaf: &NetworkLeaf) -> Result<(), ClientError> {
    let uri = parse(leaf)?;
    ClientOptions::of(&uri).map(drop)
}

fn parse(leaf: &NetworkLeaf) -> Result<Uri, ClientError> {
    Uri::parse(&leaf.uri).map_err(|source| ClientError::Uri { uri: leaf.uri.clone(), source })
}

fn open_leaf(
    leaf: &NetworkLeaf,
    options: NetworkOptions,
) -> Result<Arc<dyn BlockDevice>, Box<dyn Error + Send + Sync>> {
    let uri = parse(leaf)?;
    Ok(Arc::new(open(&uri, options.read_only, options.time_limit)?))
}
