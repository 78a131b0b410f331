//! An application that is a connection of a network disk server, with a client behind it.

use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::Builder;

use undercroft_block::BlockDevice;
use undercroft_nbd::client;
use undercroft_nbd::protocol::{Transport, Uri};
use undercroft_nbd::server::{Export, Server, Settings};

use super::application::{Application, pin};
use super::load::Load;
use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;
use crate::measure::scratch::Scratch;

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> LabError {
    LabError::Served(Box::new(error))
}

/// Serves a device in this thread, which goes to `cpu`, to a client whose threads stay where the
/// scheduler puts them.
pub(super) fn live(
    device: &Arc<dyn BlockDevice>,
    cpu: Option<u32>,
    load: Load,
    count: &AtomicU64,
    stop: &AtomicBool,
) -> Result<LatencyRecorder, LabError> {
    let directory = Scratch::new_in(&std::env::temp_dir())?;
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).map_err(failed)?;
    // One that may be written is flushed in the end, which no application asked for.
    let export = Export::new("", Arc::clone(device)).read_only();
    let server = Server::start(Vec::new(), vec![export], Settings::default()).map_err(failed)?;
    let mut uri = Uri::parse("nbd+unix:///?socket=socket&x-connections=1").map_err(failed)?;
    uri.transport = Transport::Unix(path.clone());
    std::thread::scope(|scope| {
        let ask = || {
            let found = ask(&uri, load, count, stop);
            // If it has come as far as that, nobody waits for this one.
            let _ = UnixStream::connect(&path);
            found
        };
        // Ahead of the binding, which it would inherit.
        let client = Builder::new().spawn_scoped(scope, ask).map_err(failed)?;
        pin(cpu)?;
        let (connection, _) = listener.accept().map_err(failed)?;
        server.serve(connection.into()).map_err(failed)?;
        match client.join() {
            Ok(found) => found,
            // A defect of the experiment or of the client; the panic goes on in this thread.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The life of the client.
fn ask(
    uri: &Uri,
    load: Load,
    count: &AtomicU64,
    stop: &AtomicBool,
) -> Result<LatencyRecorder, LabError> {
    let device: Arc<dyn BlockDevice> = Arc::new(client::open(uri, true, None).map_err(failed)?);
    Application::new(&device, load).live(count, stop)
}
