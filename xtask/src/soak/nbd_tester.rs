//! `nbd-tester-client`, the test client of the reference server, at our server.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

/// Run the test client of the reference server.
#[derive(Args)]
pub(crate) struct TesterArguments {
    /// The source of Debian's package `nbd`, in which its client was built
    #[arg(long, value_name = "DIR")]
    source: PathBuf,
}

/// Each of its tests, and the bytes of the disk that this takes.
const TESTS: [(&str, &[&str], u64); 7] = [
    ("reads", &[], 200 << 20),
    ("writes", &["-w"], 200 << 20),
    ("writes and flushes", &["-w", "-f"], 200 << 20),
    ("integrity", &["-i", "-t", "integrity-test.tr"], 200 << 20),
    ("integrity, long requests", &["-i", "-t", "integrityhuge-test.tr"], 60 << 30),
    ("requests that are not whole blocks", &["-o"], 200 << 20),
    ("list of exports", &["-l"], 200 << 20),
];

pub(crate) fn nbd_tester(arguments: &TesterArguments) -> Result<()> {
    let run = arguments.source.join("tests/run");
    let run = run.canonicalize().with_context(|| format!("there is no {}", run.display()))?;
    let tester = run.join("nbd-tester-client");
    let told = "build it there: ./configure && make; make -C tests/run nbd-tester-client";
    ensure!(tester.exists(), "there is no {}; {told}", tester.display());
    let program = super::mount::build()?;
    for (name, options, bytes) in TESTS {
        let directory = tempfile::tempdir()?;
        let [disk, socket] = ["disk", "socket"].map(|name| directory.path().join(name));
        File::create(&disk)?.set_len(bytes)?;
        let mut command = Command::new(&program);
        command.arg("serve").arg(&disk).args(["--name", "disk", "--socket"]).arg(&socket);
        command.arg("--exec").arg(&tester).arg("-u").arg(&socket).args(["-N", "disk"]);
        // It tells of each request.
        let output = command.args(options).current_dir(&run).stdout(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name}: {}: {said}", output.status);
        println!("{name}: ok");
    }
    Ok(())
}
