//! A volume on a Ceph cluster of one node: built, mounted, used and taken apart through an NBD
//! export, while parts of the cluster are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tempfile::TempDir;
use undercroft_judges::ServedMount;

use crate::{shell, system, workspace};

/// Starts, stops and kills the parts.
const SCRIPT: &str = include_str!("one_node_ceph.sh");
/// Bytes of a file of the load.
const FILE: usize = 64 << 10;
/// How long nothing may hang: the limit that the URI sets, and time for a slow machine.
const LIMIT: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(90);

/// Kill parts of a Ceph cluster.
#[derive(Args)]
pub(crate) struct CephArguments {
    /// Times that each part is killed
    #[arg(long, default_value_t = 2)]
    rounds: u64,
    /// Seconds for which a part is gone
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// Builds a volume on the export of an RBD image, mounts it, writes files with fsync while the
/// exporter, whose cache is lost with it, and the OSD are killed, and looks whether each file that
/// was synced is there. Needs root.
pub(crate) fn nbd_ceph(arguments: &CephArguments) -> Result<()> {
    system::install(system::FOR_TESTS)?;
    system::install(system::FOR_CEPH)?;
    let program = super::mount::build()?;
    let cluster = Cluster::start()?;
    let uri = format!("{}&x-timeout={}s", cluster.uri, LIMIT.as_secs());
    let tree = workspace::root().join("docs");
    command(&program, &["build", "--force", &tree.display().to_string(), &uri])?;
    command(&program, &["check", &uri])?;
    println!("built and checked on {uri}");

    let mount = ServedMount::new(&program, Path::new(&uri), &[])?;
    let written = load(&mount.path(), || {
        for round in 0..arguments.rounds {
            for (kill, start) in [("nbd-kill", "nbd-start"), ("osd-kill", "osd-start")] {
                thread::sleep(Duration::from_secs(2));
                cluster.script(kill)?;
                thread::sleep(Duration::from_secs(arguments.seconds));
                cluster.script(start)?;
                println!("round {}: {kill}, {start}", round + 1);
            }
        }
        thread::sleep(Duration::from_secs(5));
        Ok(())
    })?;
    println!(
        "{} files with fsync, the slowest {:.1} s",
        written.files,
        written.slowest.as_secs_f64()
    );
    ensure!(written.slowest < PATIENCE, "an fsync took longer than the limit");
    mount.unmount()?;

    // What is in memory of the exporter is no proof.
    cluster.script("nbd-kill")?;
    cluster.script("nbd-start")?;
    command(&program, &["check", &uri])?;
    let out = cluster.home.path().join("out");
    command(&program, &["extract", &uri, &out.display().to_string()])?;
    for number in 0..written.files {
        let path = out.join(name(number));
        let bytes = fs::read(&path).with_context(|| format!("{} is lost", path.display()))?;
        ensure!(bytes == contents(number), "{} holds something else", path.display());
    }
    println!("all {} files are there, and the volume is sound", written.files);
    Ok(())
}

fn command(program: &Path, arguments: &[&str]) -> Result<()> {
    shell::output(Command::new(program).args(arguments)).map(drop)
}

/// A running cluster. Dropping it takes it away.
struct Cluster {
    home: TempDir,
    script: PathBuf,
    uri: String,
}

impl Cluster {
    fn start() -> Result<Self> {
        // Names of sockets are short.
        let home = tempfile::Builder::new().prefix("ceph-").tempdir_in("/tmp")?;
        let script = home.path().join("one_node_ceph.sh");
        fs::write(&script, SCRIPT)?;
        let mut cluster = Self { home, script, uri: String::new() };
        cluster.uri = cluster.script("start")?.trim().to_owned();
        Ok(cluster)
    }

    fn script(&self, verb: &str) -> Result<String> {
        let directory = self.home.path().join("cluster");
        let mut command = Command::new("bash");
        // A cache that is lost with the exporter.
        shell::output(command.arg(&self.script).arg(directory).arg(verb).env("CACHE", "writeback"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.script("clean") {
            eprintln!("the cluster is still there: {error:#}");
        }
    }
}

/// What a load has done.
struct Written {
    files: u64,
    slowest: Duration,
}

/// Writes and syncs files in `directory` while `strike` runs.
fn load(directory: &Path, strike: impl FnOnce() -> Result<()>) -> Result<Written> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = Written { files: 0, slowest: Duration::ZERO };
            while !done.load(Ordering::SeqCst) {
                let started = Instant::now();
                let path = directory.join(name(written.files));
                let write = || {
                    fs::write(&path, contents(written.files))?;
                    fs::File::open(&path)?.sync_all()
                };
                write().with_context(|| format!("cannot write {}", path.display()))?;
                written.slowest = written.slowest.max(started.elapsed());
                written.files += 1;
            }
            anyhow::Ok(written)
        });
        let struck = strike();
        done.store(true, Ordering::SeqCst);
        let written = writer.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
        struck?;
        written
    })
}

fn name(number: u64) -> String {
    format!("synced-{number}")
}

fn contents(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(FILE / 8)
}
