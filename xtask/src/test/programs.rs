//! The programs of the tests: cargo builds them, and they run side by side, as many as there are
//! processors, and two more. Many tests wait, for a mount, for a disk, for another thread: cargo,
//! which runs one program after the other, leaves processors idle at the end of each.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::clock::Clock;
use super::counts::Counts;
use crate::{shell, workspace};

/// Those that take longest go first, else they are what is left at the end.
const LONG: [&str; 10] = [
    "undercroft-xfs journal",
    "undercroft-xfs files",
    "undercroft suite",
    "undercroft-image suite",
    "undercroft-judges undercroft_judges",
    "undercroft-xfs volume",
    "undercroft-xfs check",
    "undercroft-recover suite",
    "undercroft-repair suite",
    "undercroft mount",
];

/// A test program.
struct Program {
    /// Package and target, as cargo calls them.
    name: String,
    path: PathBuf,
    /// The directory of its package, in which it runs.
    package: PathBuf,
}

/// A run of a program.
struct Ran {
    /// All that it printed.
    text: String,
    /// None, if it did not end.
    status: Option<ExitStatus>,
    time: Duration,
    /// The time of each of its tests.
    tests: Vec<(String, Duration)>,
}

impl Program {
    /// What a line of cargo's says, if it is about a test program.
    fn of(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        // `path+file:///directory#name@version`, or `#version` when it is called as its directory.
        let id = message["package_id"].as_str()?.rsplit(['#', '/']).next()?;
        let directory = package.file_name()?.to_str()?;
        let name = id.split_once('@').map_or(directory, |(name, _)| name);
        Some(Self {
            name: format!("{name} {}", message["target"]["name"].as_str()?),
            path: message["executable"].as_str()?.into(),
            package,
        })
    }

    /// Where in the order it comes: long ones first.
    fn place(&self) -> usize {
        LONG.iter().position(|name| *name == self.name).unwrap_or(LONG.len())
    }

    /// Runs it to its end, or until it has run for `limit`: what it printed, how it ended (not, if
    /// it had to be stopped), and how long it took.
    fn run(&self, environment: &[(&str, &Path)], limit: Duration) -> Result<Ran> {
        let list = self.command(environment).args(["--list", "--format", "terse"]).output()?;
        let mut command = self.command(environment);
        let (output, input) = std::io::pipe()?;
        command.stdout(input.try_clone()?).stderr(input);
        let started = Instant::now();
        let mut clock = Clock::new(&String::from_utf8_lossy(&list.stdout), processors(), started);
        let mut child =
            command.spawn().with_context(|| format!("cannot start `{}`", shell::line(&command)))?;
        // Our ends of the pipe, without which it would never end.
        drop(command);
        let (sender, lines) = mpsc::channel();
        let reader = thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = output.read_until(b'\n', &mut line);
                // Nobody waits for more when the program was stopped.
                if !matches!(read, Ok(1..)) || sender.send(line).is_err() {
                    return read.map(drop);
                }
            }
        });
        let mut text = Vec::new();
        let is_over = loop {
            match lines.recv_timeout(limit.saturating_sub(started.elapsed())) {
                Ok(line) => {
                    clock.see(String::from_utf8_lossy(&line).trim_end(), Instant::now());
                    text.extend(line);
                }
                Err(error) => break error == RecvTimeoutError::Disconnected,
            }
        };
        let status = if is_over {
            reader.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Some(child.wait()?)
        } else {
            child.kill()?;
            child.wait()?;
            None
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Ran { text, status, time: started.elapsed(), tests: clock.ended })
    }

    fn command(&self, environment: &[(&str, &Path)]) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.envs(environment.iter().copied()).stdin(Stdio::null());
        command
    }
}

/// So many tests of a program run at once.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Builds all test programs of the workspace; the long ones come first.
fn build() -> Result<VecDeque<Program>> {
    // Without the programs that are examples: clippy has seen them, and tests run those for readers.
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--all-features", "--lib", "--bins", "--tests"]);
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", shell::line(&command)))?;
    let output = child.stdout.take().context("a piped output is there once")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        programs.extend(Program::of(&line?));
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` ended with {status}", shell::line(&command));
    }
    programs.sort_by(|left, right| (left.place(), &left.name).cmp(&(right.place(), &right.name)));
    Ok(programs.into())
}

/// Builds all test programs and runs them; each prints what it has to say when it ends, and none
/// runs longer than `limit`. `counts` gets every line, and the time of every test.
pub(super) fn run(
    environment: &[(&str, &Path)],
    limit: Duration,
    counts: &mut Counts,
) -> Result<()> {
    let started = Instant::now();
    let programs = build()?;
    println!("built {} programs in {:.1} s", programs.len(), started.elapsed().as_secs_f64());
    let workers = processors() + 2;
    let left = Mutex::new(programs);
    let next = || left.lock().ok()?.pop_front();
    let mut failed = Vec::new();
    thread::scope(|scope| {
        let (sender, ended) = mpsc::channel();
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(program) = next() {
                    let result = program.run(environment, limit);
                    if sender.send((program.name, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (name, result) in ended {
            let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
            match result {
                Ok(Ran { text, status, time, tests }) => {
                    println!("     Ran {name}, {}\n{text}", seconds(time));
                    text.lines().for_each(|line| counts.line(line));
                    let named = |(test, time)| (format!("{name} {test}"), time);
                    counts.times.extend(tests.into_iter().map(named));
                    match status {
                        Some(status) if status.success() => {}
                        Some(status) => failed.push(format!("{name} ended with {status}")),
                        None => failed.push(format!(
                            "{name} hung: it was stopped after {}; the last lines that it printed \
                             name the tests that had not ended",
                            seconds(time)
                        )),
                    }
                }
                Err(error) => failed.push(format!("{name}: {error:#}")),
            }
        }
    });
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"{id}","manifest_path":"/w/crates/xfs/Cargo.toml","target":{{"name":"files"}},"profile":{{"test":{test}}},"executable":"/w/target/files-0"}}"#
        )
    }

    #[test]
    fn programs_are_those_of_tests() {
        let found = Program::of(&line("path+file:///w/crates/xfs#undercroft-xfs@0.1.0", true));
        let program = found.unwrap();
        assert_eq!(program.name, "undercroft-xfs files");
        assert_eq!((program.place(), program.package), (1, PathBuf::from("/w/crates/xfs")));
        let found = Program::of(&line("path+file:///w/crates/xfs#0.1.0", true)).unwrap();
        assert_eq!((found.name.as_str(), found.place()), ("xfs files", LONG.len()));
        assert!(Program::of(&line("path+file:///w/crates/xfs#0.1.0", false)).is_none());
        assert!(Program::of("warning: something else").is_none());
    }

    fn script(directory: &Path, text: &str) -> PathBuf {
        let path = directory.join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        path
    }

    #[test]
    fn both_outputs_and_the_end_of_a_program_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = script(
            directory.path(),
            "test \"$1\" = --list && echo one: test && exit\npwd\necho $SAID >&2\necho test one ... ok\nexit 3\n",
        );
        let program = Program { name: String::new(), path, package: "/".into() };
        let ran = program.run(&[("SAID", Path::new("so"))], Duration::from_secs(600)).unwrap();
        assert_eq!(ran.text, "/\nso\ntest one ... ok\n");
        assert_eq!(ran.tests[0].0, "one");
        assert_eq!(ran.status.unwrap().code(), Some(3));
    }

    #[test]
    fn a_program_that_hangs_is_stopped_and_what_it_printed_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        // A child that keeps the output open must not hold the run up either.
        let path = script(
            directory.path(),
            "test \"$1\" = --list && exit\necho begun\nsleep 60 & \nwait\n",
        );
        let program = Program { name: String::new(), path, package: "/".into() };
        let ran = program.run(&[], Duration::from_millis(700)).unwrap();
        assert!(ran.status.is_none() && ran.time < Duration::from_secs(50));
        assert_eq!(ran.text, "begun\n");
    }
}
