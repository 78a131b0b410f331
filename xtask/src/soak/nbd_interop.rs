//! libnbd's interoperability tests at our server, which stands in for those that they are written for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::shell;

/// Run libnbd's interoperability tests.
#[derive(Args)]
pub(crate) struct InteropArguments {
    /// The source of Debian's package `libnbd`, built
    #[arg(long, value_name = "DIR")]
    source: PathBuf,
}

/// What the tests start in the place of a server.
const SERVERS: [(&str, &str); 2] = [
    ("qemu-nbd", include_str!("nbd_interop/qemu-nbd")),
    ("nbdkit", include_str!("nbd_interop/nbdkit")),
];

/// The tests of servers of plain files: the others want qcow2, descriptions of exports of their own, or
/// pre-shared keys.
const TESTS: [&str; 7] = [
    "interop-qemu-nbd",
    "socket-activation-qemu-nbd",
    "interop-nbdkit",
    "socket-activation-nbdkit",
    "interop-nbdkit-tls-certs",
    "interop-nbdkit-tls-certs-allow-enabled",
    "interop-nbdkit-tls-certs-allow-fallback",
];

pub(crate) fn nbd_interop(arguments: &InteropArguments) -> Result<()> {
    let interop = arguments.source.join("interop");
    let interop =
        interop.canonicalize().with_context(|| format!("there is no {}", interop.display()))?;
    ensure!(
        interop.join("Makefile").exists(),
        "{} is not built; do that there: ./configure && make",
        arguments.source.display()
    );
    let program = super::mount::build()?;
    let home = tempfile::tempdir()?;
    for (name, script) in SERVERS {
        let path = home.path().join(name);
        fs::write(&path, script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    for test in TESTS {
        let calls = home.path().join("calls");
        fs::write(&calls, "")?;
        let mut make = Command::new("make");
        make.arg("-C").arg(&interop).args(["check", &format!("TESTS={test}")]);
        make.env("PATH", format!("{}:{path}", home.path().display()));
        make.env("UNDERCROFT", &program).env("CALLS", &calls);
        let log = interop.join(format!("{test}.log"));
        let told = shell::output(&mut make)
            .with_context(|| format!("{test}; what it said is in {}", log.display()))?;
        ensure!(
            told.lines().any(|line| line == format!("PASS: {test}")),
            "{test} did not run; those with TLS want certtool when libnbd is configured, and \
             `make -C tests check TESTS=` there"
        );
        ensure!(!fs::read_to_string(&calls)?.is_empty(), "{test} did not ask our server");
        println!("{test}: ok");
    }
    Ok(())
}
