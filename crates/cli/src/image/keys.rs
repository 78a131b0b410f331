//! Passphrases of containers: from files, the environment, or the terminal.

use anyhow::{Context, Result, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use undercroft_container::layers::Layers;
use undercroft_container::luks::{Keys, MAX_KEY_BYTES};

/// Has a passphrase.
const VARIABLE: &str = "UNDERCROFT_PASSPHRASE";

/// The way to open what is encrypted.
pub(crate) const HOW: &str =
    "--key-file or the variable UNDERCROFT_PASSPHRASE opens what is encrypted";

/// Passphrases, to which those of the terminal are added when they are needed.
pub(crate) struct KeyRing {
    keys: RefCell<Keys>,
    is_asked: Cell<bool>,
}

impl KeyRing {
    /// Those in files and in the environment.
    pub(super) fn of(files: &[PathBuf]) -> Result<Self> {
        let mut keys = Keys::default();
        for path in files {
            keys.add(read(path)?);
        }
        if let Some(key) = std::env::var_os(VARIABLE).filter(|key| !key.is_empty()) {
            keys.add(key.into_vec());
        }
        Ok(Self { keys: RefCell::new(keys), is_asked: Cell::new(false) })
    }

    /// Those that are known.
    pub(super) fn keys(&self) -> Keys {
        self.keys.borrow().clone()
    }

    /// Asks for those of the containers that are locked, once, if there is somebody to ask.
    ///
    /// # Errors
    /// The terminal cannot be read, or who sits there gives up.
    pub(super) fn ask(&self, layers: &Layers) -> Result<bool> {
        if self.is_asked.replace(true) || !io::stdin().is_terminal() {
            return Ok(false);
        }
        let mut is_new = false;
        for node in layers.nodes().iter().filter(|node| node.is_locked) {
            let Ok(device) = &node.device else { continue };
            let key = prompt(&crate::text::visible(device.name()))?;
            if !key.is_empty() {
                self.keys.borrow_mut().add(key);
                is_new = true;
            }
        }
        Ok(is_new)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    let most = MAX_KEY_BYTES as u64 + 1;
    let read = match path.to_str() {
        Some("-") => io::stdin().take(most).read_to_end(&mut key),
        _ => File::open(path).and_then(|file| file.take(most).read_to_end(&mut key)),
    };
    read.with_context(|| format!("cannot read the key file {}", path.display()))?;
    if key.len() > MAX_KEY_BYTES {
        bail!("the key file {} has more than {MAX_KEY_BYTES} bytes", path.display());
    }
    Ok(key)
}

/// Reads a line that is not shown.
fn prompt(what: &str) -> Result<Vec<u8>> {
    const CONTROL_C: u8 = 3;
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    let terminal = terminal.context("cannot open the terminal to ask for a passphrase")?;
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    // An interrupt is read as what it is, so that the terminal is not left silent.
    silent.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
    write!(&terminal, "Passphrase for the LUKS container {what}: ")?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let mut line = Vec::new();
    let read = BufReader::new(&terminal).take(MAX_KEY_BYTES as u64).read_until(b'\n', &mut line);
    tcsetattr(&terminal, OptionalActions::Flush, &before)?;
    writeln!(&terminal)?;
    read.context("cannot read the passphrase")?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.contains(&CONTROL_C) {
        bail!("no passphrase for {what}");
    }
    Ok(line)
}
