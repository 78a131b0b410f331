//! A server at a private socket, and programs that are its clients.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;
use undercroft_block::{BlockDevice, FileDevice, FileOptions};
use undercroft_nbd::protocol::Uri;
use undercroft_nbd::server::{Export, Listener, Server, Settings};

/// A server, and a directory for its socket and files.
pub(crate) struct Served {
    pub(crate) directory: TempDir,
    pub(crate) server: Option<Server>,
    /// What the server told.
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

impl Served {
    /// Serves what `exports` makes of a directory.
    pub(crate) fn new(exports: impl FnOnce(&Path) -> Vec<Export>, settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = Listener::unix(&directory.path().join("socket")).unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&log);
        let settings =
            Settings { log: Arc::new(move |line| told.lock().push(line.to_owned())), ..settings };
        let exports = exports(directory.path());
        let server = Some(Server::start(vec![listener], exports, settings).unwrap());
        Self { directory, server, log }
    }

    /// One export `disk`, a file of `bytes` zero bytes.
    pub(crate) fn file(bytes: u64) -> Self {
        let export = |directory: &Path| {
            let path = directory.join("disk.img");
            File::create(&path).unwrap().set_len(bytes).unwrap();
            vec![Export::new("disk", device(&path))]
        };
        Self::new(export, Settings::default())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn uri(&self, export: &str) -> String {
        Uri::unix(&self.path("socket"), export).to_string()
    }

    /// Stops the server.
    pub(crate) fn stop(&mut self) {
        self.server.take().unwrap().stop().unwrap();
    }
}

/// An open file as a device.
pub(crate) fn device_of(file: &File) -> Arc<dyn BlockDevice> {
    let options = FileOptions::default();
    Arc::new(FileDevice::from_file(file.try_clone().unwrap(), "disk", &options).unwrap())
}

/// The file as a device.
pub(crate) fn device(path: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(path, false).unwrap())
}

/// A file of bytes that do not repeat, with a hole of a megabyte in it.
pub(crate) fn sample(path: &Path, megabytes: u64) {
    let mut file = File::create(path).unwrap();
    file.set_len(megabytes << 20).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for megabyte in 0..megabytes {
        let words = (0..1 << 17).flat_map(|_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state.to_le_bytes()
        });
        let bytes: Vec<u8> = words.collect();
        if megabyte != 1 {
            use std::os::unix::fs::FileExt as _;
            file.write_all_at(&bytes, megabyte << 20).unwrap();
        }
    }
    file.flush().unwrap();
}

/// Runs a program, which must be installed and succeed.
#[track_caller]
pub(crate) fn runs(program: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| {
            panic!("{program} cannot be run ({error}); `cargo xtask test --only setup` installs it")
        });
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{program} {arguments:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}
