//! Where clients come from.

use super::Args;
use crate::failure::Usage;
use anyhow::{Context, Result, bail};
use rustix::fs::{FileType, fstat};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use undercroft_nbd::protocol::{DEFAULT_PORT, Uri};
use undercroft_nbd::server::Listener;

/// The first descriptor that a service manager hands on.
const FIRST: i32 = 3;

/// Listeners, and their addresses as far as they are known.
pub(super) struct Sockets {
    pub(super) listeners: Vec<Listener>,
    pub(super) addresses: Vec<Address>,
    /// The directory of a private socket.
    _private: Option<TempDir>,
}

/// An address of this server.
pub(super) enum Address {
    Unix(PathBuf),
    Tcp(String, u16),
}

/// The URI of an export at an address.
pub(super) fn uri(address: &Address, export: &str, tls: bool) -> Uri {
    let uri = match address {
        Address::Unix(path) => Uri::unix(path, export),
        Address::Tcp(host, port) => Uri::tcp(host, *port, export),
    };
    Uri { tls, ..uri }
}

impl Sockets {
    /// The URI of an export at the first address.
    pub(super) fn uri(&self, export: &str, tls: bool) -> Result<Uri> {
        let first = self.addresses.first();
        // Sockets of a service manager have clients that know where they are.
        Ok(first.map_or_else(|| Uri::unix(Path::new("?"), export), |at| uri(at, export, tls)))
    }
}

/// Opens all sockets that are asked for.
pub(super) fn open(args: &Args) -> Result<Sockets> {
    let mut listeners = handed_on()?;
    let mut addresses = Vec::new();
    let mut private = None;
    let mut unix = args.socket.clone();
    if !args.exec.is_empty() && unix.is_empty() && args.listen.is_empty() {
        let directory = tempfile::tempdir().context("cannot make a directory for the socket")?;
        unix.push(directory.path().join("nbd.sock"));
        private = Some(directory);
    }
    for path in unix {
        let listener = Listener::unix(&path)
            .with_context(|| format!("cannot listen at {}", path.display()))?;
        listeners.push(listener);
        addresses.push(Address::Unix(std::path::absolute(&path)?));
    }
    for place in &args.listen {
        let (host, port) = host_and_port(place)?;
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let listener = Listener::tcp(&format!("{bracketed}:{port}"))
            .with_context(|| format!("cannot listen at {place}"))?;
        let port = listener.port()?.unwrap_or(port);
        listeners.push(listener);
        addresses.push(Address::Tcp(host, port));
    }
    if listeners.is_empty() {
        let what = "clients need a place: --socket PATH, --listen HOST:PORT, --stdio or --exec";
        return Err(Usage(what.into()).into());
    }
    Ok(Sockets { listeners, addresses, _private: private })
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.
fn host_and_port(place: &str) -> Result<(String, u16)> {
    if place.contains('/') {
        let what = format!("--listen {place}: no HOST:PORT; for a socket write --socket PATH");
        return Err(Usage(what).into());
    }
    let uri = Uri::parse(&format!("nbd://{place}/"))
        .map_err(|error| Usage(format!("--listen {place}: {error}")))?;
    match uri.transport {
        undercroft_nbd::protocol::Transport::Tcp { host, port } => Ok((host, port)),
        undercroft_nbd::protocol::Transport::Unix(_) => Ok((place.to_owned(), DEFAULT_PORT)),
    }
}

/// Standard input, which must be a socket.
pub(super) fn standard_input() -> Result<OwnedFd> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    let kind = FileType::from_raw_mode(fstat(&socket)?.st_mode);
    if kind != FileType::Socket {
        bail!("standard input is not a socket: start this by a program that hands one on");
    }
    Ok(socket)
}

/// The sockets of a service manager, by the protocol of `sd_listen_fds(3)`.
fn handed_on() -> Result<Vec<Listener>> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<i32>().ok());
    let own = getpid();
    let (Some(process), Some(count)) = (number("LISTEN_PID"), number("LISTEN_FDS")) else {
        return Ok(Vec::new());
    };
    if process != own.as_raw_nonzero().get() {
        return Ok(Vec::new());
    }
    let process = pidfd_open(own, PidfdFlags::empty()).context("cannot open this process")?;
    (FIRST..FIRST.saturating_add(count))
        .map(|number| {
            // A descriptor of this process by its number, without trust in the number.
            let socket =
                pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).with_context(|| {
                    format!("LISTEN_FDS is {count}, but descriptor {number} is not open")
                })?;
            let kind = FileType::from_raw_mode(fstat(&socket)?.st_mode);
            if kind != FileType::Socket {
                bail!("descriptor {number} of LISTEN_FDS is not a socket");
            }
            Ok(Listener::from(socket))
        })
        .collect()
}
