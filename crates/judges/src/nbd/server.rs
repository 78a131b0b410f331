//! A server on a socket of its own, which a test can kill and start again.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Error, program};

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at whether it does.
const PAUSE: Duration = Duration::from_millis(5);

/// A server and its directory. Dropping it kills the server.
#[derive(Debug)]
pub struct NbdServer {
    program: PathBuf,
    arguments: Vec<OsString>,
    home: TempDir,
    process: Option<Child>,
}

impl NbdServer {
    /// nbdkit with these arguments: plugin, filters and their parameters.
    ///
    /// # Errors
    /// It is missing, or does not listen: the error carries what it said.
    pub fn nbdkit<A: AsRef<OsStr>>(arguments: &[A]) -> Result<Self, Error> {
        let all = |socket: &Path| {
            let options = ["--foreground", "--unix"];
            options.into_iter().map(OsString::from).chain([socket.into()]).collect()
        };
        Self::new(find("nbdkit", "install the Debian package nbdkit")?, all, arguments)
    }

    /// qemu-nbd with these arguments, for 16 clients: the image and its options. The export is `disk`.
    ///
    /// # Errors
    /// It is missing, or does not listen: the error carries what it said.
    pub fn qemu<A: AsRef<OsStr>>(arguments: &[A]) -> Result<Self, Error> {
        let all = |socket: &Path| {
            let socket = [OsString::from("--socket"), socket.into()];
            let options = ["--persistent", "--shared=16", "--export-name=disk"];
            options.into_iter().map(OsString::from).chain(socket).collect()
        };
        Self::new(find("qemu-nbd", "install the Debian package qemu-utils")?, all, arguments)
    }

    /// `undercroft serve` of `program` with these arguments: devices and options.
    ///
    /// # Errors
    /// It does not listen: the error carries what it said.
    pub fn undercroft<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Result<Self, Error> {
        let all = |socket: &Path| vec!["serve".into(), "--socket".into(), socket.into()];
        Self::new(program.to_owned(), all, arguments)
    }

    /// `program` with the path of its socket as the first argument, and these behind it.
    ///
    /// # Errors
    /// It does not listen: the error carries what it said.
    pub fn at_socket<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Result<Self, Error> {
        Self::new(program.to_owned(), |socket| vec![socket.into()], arguments)
    }

    fn new<A: AsRef<OsStr>>(
        program: PathBuf,
        options: impl FnOnce(&Path) -> Vec<OsString>,
        arguments: &[A],
    ) -> Result<Self, Error> {
        // Names of sockets are short.
        let home = tempfile::Builder::new().prefix("nbd-").tempdir_in("/tmp");
        let home = home.map_err(Error::io("cannot make a directory in", Path::new("/tmp")))?;
        let mut all = options(&home.path().join("socket"));
        all.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        let mut server = Self { program, arguments: all, home, process: None };
        server.start()?;
        Ok(server)
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.home.path().join("socket")
    }

    /// The URI of one of its exports, with further parameters such as `x-timeout=5s`.
    #[must_use]
    pub fn uri(&self, export: &str, parameters: &[&str]) -> String {
        uri(&self.socket(), export, parameters)
    }

    /// Starts it, after a kill.
    ///
    /// # Errors
    /// As for a new one.
    pub fn start(&mut self) -> Result<(), Error> {
        self.kill();
        let log = self.home.path().join("log");
        let output = File::create(&log).map_err(Error::io("cannot create", &log))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(Error::io("cannot open", &log))?).stderr(output);
        let process = command.spawn().map_err(Error::io("cannot start", &self.program))?;
        let process = self.process.insert(process);
        let started = Instant::now();
        while UnixStream::connect(self.home.path().join("socket")).is_err() {
            let ended = process.try_wait().map_err(Error::io("cannot wait for", &self.program))?;
            if ended.is_some() || started.elapsed() > PATIENCE {
                let status =
                    ended.map_or("does not listen".to_owned(), |status| status.to_string());
                let output = std::fs::read_to_string(&log).unwrap_or_default();
                let command = self.program.display().to_string();
                return Err(Error::Failed { command, status, output });
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Whether it has ended, by itself or by a kill.
    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(|process| !matches!(process.try_wait(), Ok(None)))
    }

    /// Kills it as a crash would: nothing is written any more.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_file(self.socket());
    }

    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    /// It failed: the error carries what it said.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let ended = process.wait().map_err(Error::io("cannot wait for", &self.program))?;
        if ended.success() {
            return Ok(());
        }
        let output = std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
        let command = self.program.display().to_string();
        Err(Error::Failed { command, status: ended.to_string(), output })
    }

    /// Time that processors have worked for it so far, in seconds, by ticks of the kernel's clock.
    ///
    /// # Errors
    /// It does not run.
    pub fn cpu_seconds(&self) -> Result<f64, Error> {
        /// Ticks a second in files of `/proc`.
        const TICKS: f64 = 100.0;
        let id = self.process.as_ref().map_or(0, Child::id);
        let path = PathBuf::from(format!("/proc/{id}/stat"));
        let text = std::fs::read_to_string(&path).map_err(Error::io("cannot read", &path))?;
        // The name of the program may have spaces; the time in user and in system are the fields 14
        // and 15, 12 and 13 of those behind it.
        let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let times = fields.split_whitespace().skip(11).take(2);
        Ok(times.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS)
    }

    /// Stops it where it is; it neither answers nor closes anything.
    pub fn freeze(&self) {
        self.signal(nix::sys::signal::Signal::SIGSTOP);
        let Some(process) = &self.process else { return };
        // Its other threads may still run when the signal has been sent.
        let tasks = format!("/proc/{}/task", process.id());
        let stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state comes behind the name, which may hold anything but is in parentheses.
            stat.rsplit(')')
                .next()
                .is_none_or(|rest| !rest.trim_start().starts_with(['R', 'S', 'D']))
        };
        while let Ok(mut tasks) = std::fs::read_dir(&tasks)
            && !tasks.all(|task| task.is_ok_and(stopped))
        {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(nix::sys::signal::Signal::SIGCONT);
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        if let Some(process) = &self.process {
            // The number of a process of ours that was not waited for is no other's.
            let id = nix::unistd::Pid::from_raw(process.id().cast_signed());
            let _ = nix::sys::signal::kill(id, signal);
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(process) = &mut self.process
        {
            // Whether it was the server that failed.
            let log = std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
            eprintln!("the server: {:?}; it said:\n{log}", process.try_wait());
        }
        self.kill();
    }
}

fn find(name: &'static str, remedy: &'static str) -> Result<PathBuf, Error> {
    let missing = || Error::Missing { program: name.to_owned(), remedy };
    program::find(name.as_ref()).ok_or_else(missing)
}

/// The URI of an export on `socket`.
pub(super) fn uri(socket: &Path, export: &str, parameters: &[&str]) -> String {
    let parameters: String = parameters.iter().map(|parameter| format!("&{parameter}")).collect();
    format!("nbd+unix:///{export}?socket={}{parameters}", socket.display())
}
