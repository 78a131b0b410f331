//! NBD servers of others, and a wire between them and a client that can be cut.

mod proxy;
mod server;

pub use proxy::Proxy;
pub use server::NbdServer;
