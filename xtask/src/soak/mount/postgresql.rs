//! `PostgreSQL` under pgbench when the server of its mount is killed: it recovers, holds each
//! transaction that pgbench saw, and amcheck finds nothing.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use undercroft_judges::random::Random;

use super::stand::Stand;
use crate::shell;

/// Its own user; root may not run it.
const USER: &str = "postgres";
const DATABASE: &str = "bench";
/// How long a server of the database may take to recover.
const PATIENCE: Duration = Duration::from_secs(120);
/// Balances, which each transaction changes by the same amount.
const BALANCED: &str = "select (select sum(abalance) from pgbench_accounts) = d.sum \
     and (select sum(bbalance) from pgbench_branches) = d.sum \
     and (select sum(tbalance) from pgbench_tellers) = d.sum, d.count \
     from (select coalesce(sum(delta), 0) as sum, count(*) as count from pgbench_history) as d";

/// The programs of a version, a mount, and what listens.
struct Cluster {
    stand: Stand,
    programs: PathBuf,
    sockets: PathBuf,
    server: Option<Child>,
}

/// Kills so many servers.
pub(super) fn run(program: &Path, count: u64, random: &mut Random) -> Result<String> {
    let mut cluster = Cluster::new(Stand::new(program, &["allow_other"])?)?;
    cluster.start()?;
    cluster.output("createdb", &[DATABASE])?;
    cluster.output("pgbench", &["--quiet", "--initialize", "--scale=5", DATABASE])?;
    cluster.query("create extension amcheck")?;
    let mut seen = 0;
    for round in 0..count {
        seen += cluster.round(seen, random).with_context(|| format!("round {}", round + 1))?;
        println!("kill {}: {seen} transactions so far", round + 1);
    }
    cluster.stop()?;
    Ok(format!("{seen} transactions, {}", cluster.stand.accept()?))
}

impl Cluster {
    /// A cluster of the newest version that is installed, on the mount.
    fn new(stand: Stand) -> Result<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").context("no PostgreSQL is installed")?;
        let mut versions: Vec<_> =
            versions.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
        versions.sort();
        let programs = versions.pop().context("no PostgreSQL is installed")?.join("bin");
        // A directory of its own: that of the image is for root alone.
        let sockets = tempfile::tempdir()?.keep();
        for directory in [&sockets, &stand.path().join("data")] {
            fs::create_dir_all(directory)?;
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
            let user = shell::output(Command::new("id").args(["-u", USER]))?.trim().parse()?;
            chown(directory, Some(user), None)?;
        }
        let cluster = Self { stand, programs, sockets, server: None };
        let data = cluster.data();
        cluster.output("initdb", &["--auth=trust", "--data-checksums", "--pgdata", &data])?;
        Ok(cluster)
    }

    fn data(&self) -> String {
        self.stand.path().join("data").display().to_string()
    }

    /// A program of the version, as the user who may run them, which finds the server.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
        command.arg(self.programs.join(name)).current_dir("/");
        command.env("PGHOST", &self.sockets).stdin(Stdio::null());
        command
    }

    fn output(&self, name: &str, arguments: &[&str]) -> Result<String> {
        shell::output(self.command(name).args(arguments))
    }

    fn query(&self, text: &str) -> Result<String> {
        self.output("psql", &["--no-psqlrc", "-XAtc", text, DATABASE])
    }

    /// Starts the server, which recovers first, and waits until it answers.
    fn start(&mut self) -> Result<()> {
        let log =
            File::options().create(true).append(true).open(self.stand.outside().join("pg"))?;
        let mut command = self.command("postgres");
        command.args(["-D", &self.data(), "-c", "listen_addresses=", "-c"]);
        command.arg(format!("unix_socket_directories={}", self.sockets.display()));
        command.stdout(log.try_clone()?).stderr(log);
        let server = self.server.insert(command.spawn()?);
        let id = server.id();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let ended = self.server.as_mut().map_or(Ok(None), Child::try_wait)?;
            if let Some(status) = ended {
                bail!("postgres ended with {status}:\n{}", self.log());
            }
            if self.output("pg_isready", &["--quiet"]).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("postgres, process {id}, does not answer:\n{}", self.log())
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(self.stand.outside().join("pg")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Ends the server in order.
    fn stop(&mut self) -> Result<()> {
        let data = self.data();
        self.output("pg_ctl", &["stop", "--wait", "--mode=fast", "--pgdata", &data])?;
        self.server.take().map_or(Ok(()), |mut server| Ok(server.wait().map(drop)?))
    }

    /// Ends the server and all its processes at once: each has a group of its own, and only the server
    /// knows them. Those that wait for one that is gone would wait for ever.
    fn abandon(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let process = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
        // It may have ended by itself.
        let _ = kill_process(process.context("no process")?, Signal::QUIT);
        server.wait().map(drop).context("cannot await postgres")
    }

    /// One kill behind `before` transactions; the number that pgbench saw meanwhile.
    fn round(&mut self, before: u64, random: &mut Random) -> Result<u64> {
        let mut pgbench = self.command("pgbench");
        // With a vacuum first it would empty the history.
        pgbench.args(["--client=8", "--jobs=2", "--time=600", "--no-vacuum"]);
        pgbench.args(["--log", "--log-prefix=seen"]);
        pgbench.arg(DATABASE).current_dir(&self.sockets);
        let mut running = pgbench.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        thread::sleep(Duration::from_millis(1000 + random.below(3000)));
        ensure!(running.try_wait()?.is_none(), "pgbench ended before the server was killed");
        self.stand.kill()?;
        self.abandon()?;
        running.wait()?;
        let mut seen = 0;
        for entry in fs::read_dir(&self.sockets)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"seen")) {
                // A line for each transaction; the last one may be torn.
                seen += fs::read(&path)?.iter().filter(|byte| **byte == b'\n').count() as u64;
                fs::remove_file(path)?;
            }
        }
        self.stand.revive()?;
        self.start()?;
        let answer = self.query(BALANCED)?;
        let (balanced, rows) = answer.trim().split_once('|').unwrap_or_default();
        ensure!(balanced == "t", "the balances differ: {answer}");
        let rows: u64 = rows.parse().context("no count of rows")?;
        ensure!(
            rows >= before + seen,
            "{} transactions were seen, {rows} are there",
            before + seen
        );
        self.output("pg_amcheck", &["--heapallindexed", "--parent-check", DATABASE])?;
        Ok(seen)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.abandon();
        let _ = fs::remove_dir_all(&self.sockets);
    }
}
