//! Serves memory as the export `disk`, until it is killed.
//!
//! ```text
//! cargo run --release -p undercroft-nbd --example memory_server -- SOCKET BYTES
//! ```
//!
//! `cargo xtask bench nbd` compares it with nbdkit.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::MemoryDevice;
use undercroft_nbd::server::{Export, Listener, Server, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, bytes] = &arguments[..] else { return Err("SOCKET BYTES".into()) };
    let device = Arc::new(MemoryDevice::new(bytes.parse()?));
    let listener = Listener::unix(Path::new(socket))?;
    let _server =
        Server::start(vec![listener], vec![Export::new("disk", device)], Settings::default())?;
    loop {
        std::thread::park();
    }
}
