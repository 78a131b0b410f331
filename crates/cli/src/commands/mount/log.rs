//! Where the log of a server goes.

use crate::text;
use anyhow::{Context, Result};
use parking_lot::Mutex;
use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use undercroft_fuse::Log;

/// Socket of the system's log.
const SYSTEM: &str = "/dev/log";

/// Messages of a daemon that warn, in the terms of syslog(3): 3 times 8, and 4.
const PRIORITY: u8 = 28;

/// The log of a server: standard error at first, and from the moment on when it is in the background
/// a file or the system's log.
#[derive(Clone)]
pub(super) struct Destination {
    is_background: Arc<AtomicBool>,
    log: Log,
}

impl Destination {
    pub(super) fn new(file: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let file = File::options().append(true).create(true).open(path);
            file.with_context(|| format!("cannot open the log {}", path.display()))
        };
        let file = file.map(open).transpose()?.map(Mutex::new);
        let is_background = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_background);
        let log = Log::new(move |line| {
            let line = text::visible(line);
            if !seen.load(Ordering::Relaxed) {
                eprintln!("undercroft: {line}");
            } else if let Some(file) = &file {
                let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
                // A log that cannot be written has no place to say so.
                let _ = writeln!(file.lock(), "{now:.3} {line}");
            } else if let Ok(socket) = UnixDatagram::unbound() {
                let line = format!("<{PRIORITY}>undercroft[{}]: {line}", std::process::id());
                let _ = socket.send_to(line.as_bytes(), SYSTEM);
            }
        });
        Ok(Self { is_background, log })
    }

    pub(super) fn log(&self) -> Log {
        self.log.clone()
    }

    pub(super) fn line(&self, line: &str) {
        self.log.line(line);
    }

    pub(super) fn go_to_background(&self) {
        self.is_background.store(true, Ordering::Relaxed);
    }
}
