//! moto: the services of Amazon in memory, in Python.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::{Error, cache, program};

/// A server of S3. Dropping it kills it.
#[derive(Debug)]
pub struct Moto {
    process: Child,
    port: u16,
}

impl Moto {
    /// Starts one, with nothing in it.
    ///
    /// # Errors
    /// It is missing, or does not say where it listens.
    pub fn start() -> Result<Self, Error> {
        let path = find()?;
        let failed = Error::io("cannot run", &path);
        let mut command = Command::new(&path);
        command.args(["-H", "127.0.0.1", "-p", "0"]).env("PYTHONUNBUFFERED", "1");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let output = process.stderr.take().map(BufReader::new);
        let mut lines = output.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let mut said = String::new();
        while let Some(line) = lines.next() {
            said.push_str(&line);
            said.push('\n');
            let Some((_, port)) = line.split_once("Running on http://127.0.0.1:") else { continue };
            if let Ok(port) = port.trim().parse() {
                // It says a line for each request, which somebody has to take.
                thread::spawn(move || lines.for_each(drop));
                return Ok(Self { process, port });
            }
        }
        let status = process.wait().map_err(Error::io("cannot wait for", &path))?.to_string();
        Err(Error::Failed { command: format!("{command:?}"), status, output: said })
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn find() -> Result<PathBuf, Error> {
    let installed = cache::python().join("bin/moto_server");
    let found = Some(installed).filter(|path| path.is_file());
    found.or_else(|| program::find("moto_server".as_ref())).ok_or_else(|| Error::Missing {
        program: "moto_server".to_owned(),
        remedy: "run `cargo xtask test --only setup`, which installs it from PyPI",
    })
}
