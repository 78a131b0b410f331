//! The server of a stand: one of others in its own process, or ours in this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use undercroft_block::FileDevice;
use undercroft_judges::nbd::NbdServer;
use undercroft_nbd::protocol::Uri;
use undercroft_nbd::server::{Export, Listener, Server, Settings};

/// The server of a stand.
pub enum Target {
    /// A process that can be killed.
    Other(NbdServer),
    /// A server of this process, of which only connections break.
    Own { server: Option<Server>, home: TempDir, file: PathBuf },
}

impl Target {
    pub fn nbdkit(arguments: &[&str]) -> Self {
        Self::Other(NbdServer::nbdkit(arguments).expect("nbdkit"))
    }

    pub fn qemu(arguments: &[&str]) -> Self {
        Self::Other(NbdServer::qemu(arguments).expect("qemu-nbd"))
    }

    pub fn own(file: &Path) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut target = Self::Own { server: None, home, file: file.to_owned() };
        target.start();
        target
    }

    pub fn socket(&self) -> PathBuf {
        match self {
            Self::Other(server) => server.socket(),
            Self::Own { home, .. } => home.path().join("socket"),
        }
    }

    pub fn uri(&self, export: &str) -> String {
        Uri::unix(&self.socket(), export).to_string()
    }

    /// Kills a process, stops a server of this one, and starts it again after `pause`.
    pub fn restart(&mut self, pause: Duration) {
        match self {
            Self::Other(server) => server.kill(),
            Self::Own { server, .. } => {
                if let Some(server) = server.take() {
                    server.stop().expect("an orderly end");
                }
            }
        }
        thread::sleep(pause);
        self.start();
    }

    fn start(&mut self) {
        let socket = self.socket();
        match self {
            Self::Other(server) => server.start().expect("the server again"),
            Self::Own { server, file, .. } => {
                let listener = Listener::unix(&socket).expect("a socket");
                let device = Arc::new(FileDevice::open(&*file, false).expect("the file"));
                let exports = vec![Export::new("disk", device)];
                let started = Server::start(vec![listener], exports, Settings::default());
                *server = Some(started.expect("a server"));
            }
        }
    }

    /// Starts a process again that has ended by itself: nbdkit 1.32 aborts at times when a
    /// connection is cut while several of its threads answer (`raw_send_socket`: `sock >= 0`).
    pub fn revive(&mut self) {
        if let Self::Other(server) = self
            && server.has_ended()
        {
            server.start().expect("the server again");
        }
    }
}
