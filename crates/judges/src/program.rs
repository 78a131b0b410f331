//! Finding and running the judges' programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::Error;

/// Directories of system programs that an ordinary user's `PATH` leaves out.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The path of `program` as the shell would find it, looking also where only root's `PATH` does.
#[must_use]
pub fn find(program: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// The output of a finished program (both streams, output first) and its exit status.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    pub(crate) text: String,
}

impl Finished {
    /// The program's output when it succeeded, otherwise an error with everything it said.
    pub(crate) fn success(self) -> Result<String, Error> {
        if self.status.success() { Ok(self.text) } else { Err(self.failure()) }
    }

    /// The error that says that the program did not do its work.
    pub(crate) fn failure(self) -> Error {
        Error::Failed { command: self.command, status: self.status.to_string(), output: self.text }
    }
}

/// Runs `command` without input in the C locale, to its end.
pub(crate) fn run(command: &mut Command) -> Result<Finished, Error> {
    let program = Path::new(command.get_program()).to_owned();
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("cannot start", &program))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let mut line = program.display().to_string();
    for argument in command.get_args() {
        line.push(' ');
        let argument = argument.to_string_lossy();
        if argument.contains([' ', '$', '*']) {
            line.push_str(&format!("'{argument}'"));
        } else {
            line.push_str(&argument);
        }
    }
    Ok(Finished { command: line, status: output.status, text })
}
