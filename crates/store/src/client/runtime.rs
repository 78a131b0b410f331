//! The threads in which requests of all stores run.

use crate::error::StoreError;
use rustls::crypto::ring;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

/// Threads that send and receive.
const THREADS: usize = 2;
/// Fetches at a time. There are many more threads that may block: one that waits for an answer needs
/// another one where the store is a directory, or a name is looked up.
const FETCHES: usize = 32;

static ROOM: Semaphore = Semaphore::const_new(FETCHES);

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// Where tasks run; the threads begin with the first use.
pub(crate) fn handle() -> Result<&'static Handle, StoreError> {
    let runtime = RUNTIME.get_or_init(|| {
        // Where another one is set already, that is the one of this process.
        let _ = ring::default_provider().install_default();
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("store");
        builder.enable_all().build().map_err(|error| error.to_string())
    });
    match runtime {
        Ok(runtime) => Ok(runtime.handle()),
        Err(why) => Err(StoreError::local("cannot start threads", why)),
    }
}

/// Has a thread fetch, decompress and verify, when there is room.
pub(crate) fn spawn(fetch: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    handle()?.spawn(async move {
        // It is never closed.
        let _room = ROOM.acquire().await;
        // One that panics is a defect that its thread has told of.
        let _ = tokio::task::spawn_blocking(fetch).await;
    });
    Ok(())
}
