//! A server, a wire, and one that breaks them while a load runs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use undercroft_block::{BlockDevice, flush};
use undercroft_judges::nbd::Proxy;
use undercroft_judges::random::Random;
use undercroft_nbd::client;
use undercroft_nbd::protocol::Uri;

use super::load::{BLOCKS, Load};
use super::target::Target;

/// How often is looked whether a server has ended by itself, while the load comes to its end.
const LOOK: Duration = Duration::from_millis(20);

/// What is broken, and how.
#[derive(Clone, Copy, Debug)]
pub enum Stand {
    /// nbdkit with a cache that is lost when it is killed.
    CachedFile,
    /// qemu-nbd, which loses tables of a qcow2 when it is killed.
    Qcow2,
    /// nbdkit on a file, whose connections are cut.
    Cut { connections: usize },
    /// Our own server on a file, whose connections are cut.
    Own { connections: usize },
}

impl Stand {
    /// Runs a load while as many `breaks` happen, and looks whether anything was lost.
    pub fn run(self, seed: u64, breaks: u64) {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("disk");
        let mut server = self.serve(&path);
        let proxy = Proxy::new(&server.socket()).expect("a proxy");
        let (export, connections) = match self {
            Self::CachedFile => ("", 1),
            Self::Qcow2 => ("disk", 1),
            Self::Cut { connections } | Self::Own { connections } => ("", connections),
        };
        let connections = format!("x-connections={connections}");
        let open = |uri: &str| {
            let uri = Uri::parse(uri).expect("a URI");
            client::open(&uri, false, None).expect("a device")
        };
        let device: Arc<dyn BlockDevice> =
            Arc::new(open(&proxy.uri(export, &[&connections, "x-timeout=120s", "x-unflushed=2M"])));
        let mut load = Load::new(seed);
        let done = AtomicBool::new(false);
        let mut random = Random::new(!seed);
        thread::scope(|scope| {
            // Servers end with the thread that starts them, so the load is in the other one.
            let worker = scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    load.step(&device);
                }
                // A cut that waits for its bytes may still come, and take the server with it.
                proxy.delay(Duration::ZERO);
                load.step(&device);
                load.verify(&*device);
                flush(&*device).expect("a flush");
            });
            for _ in 0..breaks {
                // Time for some writes, or hardly any.
                thread::sleep(Duration::from_millis(random.below(40)));
                self.strike(&mut server, &proxy, &mut random);
            }
            done.store(true, Ordering::SeqCst);
            while !worker.is_finished() {
                server.revive();
                thread::sleep(LOOK);
            }
        });
        // Writes before the flush survive the server, also to another client.
        server.restart(Duration::ZERO);
        drop(device);
        load.verify(&open(&server.uri(export)));
    }

    fn serve(self, path: &Path) -> Target {
        let bytes = (BLOCKS * 4096).to_string();
        let format = if let Self::Qcow2 = self { "qcow2" } else { "raw" };
        let mut create = Command::new("qemu-img");
        create.args(["create", "-q", "-f", format]).arg(path).arg(bytes);
        assert!(create.status().expect("qemu-img").success());
        let file = path.display().to_string();
        match self {
            Self::CachedFile => {
                Target::nbdkit(&["--filter=cache", "file", &file, "cache=writeback"])
            }
            Self::Qcow2 => {
                Target::qemu(&["--format=qcow2", "--cache=writeback", "--discard=unmap", &file])
            }
            Self::Cut { .. } => Target::nbdkit(&["file", &file]),
            Self::Own { .. } => Target::own(path),
        }
    }

    /// One break.
    fn strike(self, server: &mut Target, proxy: &Proxy, random: &mut Random) {
        let slow = if random.one_in(4) { random.below(3000) } else { 0 };
        proxy.delay(Duration::from_micros(slow));
        match self {
            Self::CachedFile | Self::Qcow2 => {
                server.restart(Duration::from_millis(random.below(60)));
            }
            Self::Cut { .. } | Self::Own { .. } => {
                if random.one_in(3) {
                    proxy.cut();
                } else {
                    proxy.cut_after(random.magnitude(21));
                    thread::sleep(Duration::from_millis(random.below(20)));
                }
                server.revive();
            }
        }
    }
}
