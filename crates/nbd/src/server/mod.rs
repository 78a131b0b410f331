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

mod answer;
mod connection;
mod export;
mod pipe;
mod read;
mod request;
mod service;
mod write;
mod writer;
mod writers;

pub use connection::{Listener, Tls, TlsError};
pub use export::{Export, Extents};
pub use service::{Server, ServerError, Settings};
