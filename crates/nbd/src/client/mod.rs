//! The client: an export of a server as a device.
//!
//! ```text
//! threads that wait --> flights --> links (one connection each) --> server
//!        ^                ^                                           |
//!        |                +-- supervisor (breaks, limits)             |
//!     waiters <-- one of them, or a watcher, receives for all <-------+
//! ```
//!
//! A thread that submits sends by itself, and one that waits for an answer receives: its own, and
//! those of others, until it has its own. The room `turn` says whose that is. Nothing here waits for room
//! in a socket, so a thread that receives may send, too.
//!
//! Requests are found by their cookies. What is promised when a connection breaks is in
//! `docs/nbd.md`, and why in `docs/decisions/nbd.md`.

mod device;
mod end_reason;
mod error;
mod export_limits;
mod flight;
mod options;
mod session;
mod state;
mod turn;
mod unflushed;
mod zeroes;

use std::error::Error;
use std::sync::Arc;

use undercroft_block::BlockDevice;
use undercroft_block::stack::{LeafOptions, NetworkKind, NetworkLeaf, register_network};

pub use device::{NbdDevice, NbdDriver, NbdQueue, list, open};
pub use error::ClientError;
pub use options::ClientOptions;
pub use session::handshake::ExportInfo;

use crate::protocol::Uri;

/// Makes URIs usable wherever a stack of devices is described, for the whole process.
pub fn register() {
    register_network(NetworkKind::Export, open_leaf);
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
    options: LeafOptions,
) -> Result<Arc<dyn BlockDevice>, Box<dyn Error + Send + Sync>> {
    let uri = parse(leaf)?;
    Ok(Arc::new(open(&uri, options.read_only, options.time_limit)?))
}
