//! The server: devices as exports, to any number of clients.
//!
//! A connection has one thread. It reads as many requests as one call brings, submits their bios
//! under one plug, and goes on; each answer is sent by the thread that completes its bio, several
//! with one call where they are ready together. No thread waits for a client but the one of its
//! connection.
//!
//! ```no_run
//! use std::sync::Arc;
//! use undercroft_block::MemoryDevice;
//! use undercroft_nbd::server::{Export, Listener, Server, Settings};
//!
//! let export = Export::new("scratch", Arc::new(MemoryDevice::new(1 << 30)));
//! let listener = Listener::unix("/run/scratch.sock".as_ref())?;
//! let server = Server::start(vec![listener], vec![export], Settings::default())?;
//! // Until it is to end.
//! server.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod connection;
mod cover;
mod end;
mod execute;
mod export;
mod handshake;
mod hub;
mod input;
mod intake;
mod listener;
mod load;
mod long_read;
mod long_write;
mod negotiation;
mod outbox;
mod own_writes;
mod page_aliasing;
mod part;
mod patience;
mod payload;
mod pipe;
mod placed_write;
mod poll;
mod read;
mod read_way;
mod reply;
mod splice_way;
mod spliced_write;
mod status;
mod stream;
mod tls;
mod unaligned;
mod unread;
mod writers;
mod zeroes;

pub use export::{Export, Extents};
pub use hub::{Server, ServerError, Settings};
pub use listener::Listener;
pub use tls::{Tls, TlsError};
