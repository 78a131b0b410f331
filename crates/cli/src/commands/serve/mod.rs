//! `undercroft serve`.

mod allocation;
mod export;
mod free_space;
mod odd_end;
mod program;
mod sockets;

use crate::failure::Usage;
use crate::image::{FormatArgs, PartitionChoice};
use crate::report::{self, Outcome};
use crate::value::{self, Stretch};
use anyhow::{Context, Result};
use clap::ValueHint;
use export::Exports;
use nix::sys::signal::{SigSet, Signal};
use odd_end::OddEnd;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::stack::Description;
use undercroft_nbd::server::{Export, Server, Settings, Tls};

/// Serve images, disks and stacks as network disks (NBD), for QEMU, nbd-client, libnbd and others.
///
/// Each DEVICE is an export of the name of its file, or of its --name; a single one is the default
/// export, too. Several clients may use an export at once: they see the same, and what one has
/// flushed is durable for all. While a command of undercroft has it open for change (a mount, a shell),
/// all others only read. Requests may begin and end anywhere; writes that are not whole blocks
/// (512 bytes, or the logical block of a disk) take turns.
/// SIGTERM and Ctrl-C end it: what is in flight is answered, and the devices are flushed.
///
/// Clients see which ranges of a single file are holes (base:allocation). Of an XFS volume served
/// with --read-only they can also ask which ranges are free space (undercroft:free: flag 1 is free),
/// so that a copy need not read them.
///
/// Where clients come from: --socket, --listen, the sockets of a service manager (LISTEN_FDS), or
/// standard input (--stdio). The addresses are printed when the server answers. Who may connect is a
/// matter of the permissions of the socket's directory, of the firewall, and of --tls-verify-peer.
///
/// Examples:
///   undercroft serve disk.img --exec sh -c 'qemu-img info "$NBD_URI"'
///   undercroft serve --read-only root.img --exec sh -c 'nbdinfo --map=undercroft:free "$NBD_URI"'
///   undercroft serve --overlay disk.img --exec sh -c 'qemu-io -f raw -c "write 0 1M" "$NBD_URI"'
///   undercroft serve disk.img root.img --exec sh -c 'nbdinfo --list "$NBD_URI"'
#[derive(clap::Args)]
#[command(verbatim_doc_comment, override_usage = USAGE)]
pub(super) struct Args {
    /// Image files, block devices, or devices stacked on several, such as 'stripe:64k(a.img,b.img)'
    /// or @stack.toml.
    #[arg(value_name = "DEVICE", required = true, value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    devices: Vec<Description>,

    /// Name of the export of the first DEVICE; once more for the second, and so on.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// Serve only this partition of the device (GPT or MBR): its number, as Linux counts, its name,
    /// or the label of what is in it.
    #[arg(long, value_name = "N|NAME", conflicts_with = "offset")]
    partition: Option<PartitionChoice>,

    /// Serve only this logical volume of LVM, such as vg/root.
    #[arg(long, value_name = "GROUP/VOLUME", value_parser = value::logical_volume, conflicts_with = "offset")]
    lv: Option<String>,

    /// Serve the device from this byte on (suffixes such as K, M, G).
    ///
    /// With `,size=BYTES` behind that it has so many bytes, such as 1M,size=10G; else all to the end.
    #[arg(long, value_name = "BYTES", value_parser = value::stretch)]
    offset: Option<Stretch>,

    #[command(flatten)]
    format: FormatArgs,

    /// Refuse everything that changes a device.
    #[arg(short, long)]
    read_only: bool,

    /// Let several programs change a device at once that each want to be the only one, as every command
    /// of undercroft with a network disk does. They must know what they do: two volumes mounted from one
    /// device destroy each other.
    #[arg(long, conflicts_with = "read_only")]
    shared: bool,

    /// Keep changes in memory, or in a file without a name in DIR, and lose them at the end: the
    /// devices stay as they are.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with = "read_only",
        value_hint = ValueHint::DirPath
    )]
    overlay: Option<Option<PathBuf>>,

    /// Listen at a socket of this machine. May be given several times.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    socket: Vec<PathBuf>,

    /// Listen at a TCP port, 10809 if there is none in it; 0 is one that is free. May be given
    /// several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    listen: Vec<String>,

    /// Serve one client at standard input, which is a socket.
    #[arg(long, conflicts_with_all = ["socket", "listen", "exec"])]
    stdio: bool,

    /// Run this, stop, and exit as it did. NBD_URI names the first export; without another place the
    /// server listens at a private socket. Everything behind this belongs to the program.
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<OsString>,

    /// Encrypt with the certificate in this directory: server-cert.pem and server-key.pem (X.509,
    /// no pre-shared keys). Clients must use TLS, nbds:// in their URIs.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    tls: Option<PathBuf>,

    /// Take clients without TLS, too.
    #[arg(long, requires = "tls")]
    tls_optional: bool,

    /// Take only clients with a certificate that ca-cert.pem of the directory has signed.
    #[arg(long, requires = "tls")]
    tls_verify_peer: bool,

    /// Connections at a time; more are turned away.
    #[arg(long, value_name = "N", default_value = "128")]
    connections: usize,

    /// Memory for the requests of a connection that are not answered; one request may have more.
    #[arg(long, value_name = "BYTES", value_parser = value::size, default_value = "64M")]
    memory: u64,

    /// End connections on which nothing came or went for so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    idle: Option<u64>,
}

const USAGE: &str = "undercroft serve [OPTIONS] <DEVICE>... [--exec <PROGRAM> [ARGUMENT]...]";

/// Signals that ask the server to end. They are blocked in all threads, and waited for by one.
fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if !args.exec.is_empty() && std::env::args_os().next_back().as_ref() != args.exec.last() {
        let what =
            "--exec takes all that follows: undercroft serve DEVICE --exec PROGRAM ARGUMENT...";
        return Err(Usage(what.into()).into());
    }
    // Before there are threads: all of them get the mask of this one.
    signals().thread_block().context("cannot block signals")?;
    let settings = settings(args)?;
    let Exports { all: exports, odd_ends } = export::all(args)?;
    let served = serve(args, settings, exports, out);
    let restored = odd_ends.iter().try_for_each(OddEnd::restore);
    served.and_then(|outcome| restored.map(|()| outcome))
}

fn serve(
    args: &Args,
    settings: Settings,
    exports: Vec<(String, Export)>,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let name = exports.first().map(|(name, _)| name.clone()).unwrap_or_default();
    let names = exports.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let exports = exports.into_iter().map(|(_, export)| export).collect();
    if args.stdio {
        let socket = sockets::standard_input()?;
        let server = Server::start(Vec::new(), exports, settings)?;
        server.serve(socket)?;
        server.stop()?;
        return Ok(Outcome::Done);
    }
    let places = sockets::open(args)?;
    let uri = places.uri(&name, args.tls.is_some())?;
    let server = Server::start(places.listeners, exports, settings)?;
    let outcome = match args.exec.split_first() {
        Some((program, arguments)) => program::run(program, arguments, &uri),
        None => {
            for name in &names {
                for uri in
                    places.addresses.iter().map(|at| sockets::uri(at, name, args.tls.is_some()))
                {
                    writeln!(out, "{uri}")?;
                }
            }
            out.flush()?;
            signals().wait().context("cannot wait for signals")?;
            Ok(Outcome::Done)
        }
    };
    // The devices first: an error of them counts more.
    server.stop()?;
    outcome
}

fn settings(args: &Args) -> Result<Settings> {
    let tls = args
        .tls
        .as_ref()
        .map(|directory| Tls::from_directory(directory, args.tls_verify_peer, !args.tls_optional))
        .transpose()?;
    Ok(Settings {
        connections: args.connections,
        memory: usize::try_from(args.memory).unwrap_or(usize::MAX),
        idle: args.idle.map(Duration::from_secs),
        tls,
        log: Arc::new(|line| report::note(line)),
        ..Settings::default()
    })
}
