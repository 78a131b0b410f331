//! `undercroft shell`.

mod completion;
#[cfg(test)]
mod crash_tests;
mod line_editor;
mod words;

use crate::commands::verbs::{InShell, NameArgs};
use crate::failure::{ScriptLine, Usage};
use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use crate::session::Session;
use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};
use line_editor::LineEditor;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use words::Unfinished;

/// Run many commands on one volume: those typed, or a script on standard input.
///
/// Commands are those of the command line without the name of the image; words are quoted as in
/// other shells, `#` begins a comment, a backslash at the end continues a line. Names of any bytes
/// can be written as `ls` prints them, $'caf\xe9' for one. Paths start at the root directory, or where
/// `cd` has gone. On a terminal, the tab key completes commands, options, and paths.
/// The output of a command is complete when it is done, and its changes are durable then, unless
/// --batch is given. A script ends at the first command that fails; `exit` or the end of the input
/// ends the shell, and leaves the volume unmounted.
///
/// For example: undercroft shell root.img < script
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) image: ImageArgs,

    /// Make changes durable at `sync` and at the end only. This is faster; a crash loses the latest
    /// changes.
    #[arg(long)]
    batch: bool,

    /// Refuse commands that change the volume.
    #[arg(long)]
    read_only: bool,

    /// Print the output of commands as JSON, one object a line. After each command an object gives
    /// its line and how it ended. The object of an error names its line, too.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a line ended, as JSON.
#[derive(Serialize)]
struct Ended<'c> {
    line: u64,
    command: &'c str,
    outcome: &'static str,
}

/// The text of help, as JSON.
#[derive(Serialize)]
struct Help {
    text: String,
}

/// A line of the shell.
#[derive(Parser)]
#[command(name = "", no_binary_name = true, about = "Commands", disable_version_flag = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Verb(InShell),
    /// Go to a directory, the root directory by default: paths without a slash in front start there.
    Cd {
        /// Path of the directory.
        #[arg(default_value = "/")]
        path: OsString,
    },
    /// Print the directory that paths without a slash in front start at.
    Pwd(NameArgs),
    /// Leave the shell.
    #[command(visible_alias = "quit")]
    Exit,
}

/// Whether there is another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    More,
    Leave,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if args.read_only {
        let volume = args.image.open()?;
        let session = Session::new(&volume)?;
        return Shell { session, batch: true, json: args.json }.run(out);
    }
    let edit = args.image.open_for_change()?;
    let session = Session::new(edit.volume())?;
    let shell = Shell { session, batch: args.batch, json: args.json };
    let done = shell.run(out);
    // Changes before an error stay; the first error counts.
    let closed = edit.close();
    done.and_then(|outcome| closed.map(|()| outcome))
}

struct Shell<'v> {
    session: Session<'v>,
    batch: bool,
    json: bool,
}

impl Shell<'_> {
    fn run(mut self, out: &mut dyn Write) -> Result<Outcome> {
        if io::stdin().is_terminal() { self.converse(out) } else { self.script(out) }
    }

    /// A script: ends at the first error, which names the line.
    fn script(&mut self, out: &mut dyn Write) -> Result<Outcome> {
        let mut outcome = Outcome::Done;
        let mut number = 0_u64;
        let mut line = Vec::new();
        while read_line(&mut line)? {
            number += 1;
            let first = number;
            while words::split(&line) == Err(Unfinished::Backslash) {
                line.push(b'\n');
                if !read_line(&mut line)? {
                    line.pop();
                    break;
                }
                number += 1;
            }
            let (next, ended) = self.line(first, &line, out).context(ScriptLine(first))?;
            // The reader may wait for it before it sends the next line.
            out.flush()?;
            if ended != Outcome::Done {
                outcome = ended;
            }
            if next == Next::Leave {
                break;
            }
            line.clear();
        }
        Ok(outcome)
    }

    /// A conversation: errors are printed, and the next line is asked for.
    fn converse(&mut self, out: &mut dyn Write) -> Result<Outcome> {
        let mut editor = LineEditor::new(Line::command(), &self.session.fs)?;
        let mut number = 0;
        while let Some(line) = editor.read(&self.session.fs)? {
            number += 1;
            let next = self.line(number, line.as_bytes(), out);
            out.flush()?;
            match next {
                Ok((Next::More, _)) => {}
                Ok((Next::Leave, _)) => break,
                Err(error) if self.json => {
                    report::failure(&error.context(ScriptLine(number)), true);
                }
                Err(error) => {
                    report::failure(&error, false);
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Runs the line of a number.
    fn line(&mut self, number: u64, line: &[u8], out: &mut dyn Write) -> Result<(Next, Outcome)> {
        let mut words = words::split(line).map_err(|unfinished| match unfinished {
            Unfinished::Quotation => Usage("a quotation mark is left open".into()),
            Unfinished::Backslash => Usage("nothing follows the backslash at the end".into()),
        })?;
        let Some(name) = words.first().map(|name| String::from_utf8_lossy(name).into_owned())
        else {
            return Ok((Next::More, Outcome::Done));
        };
        if name == "?" {
            words[0] = b"help".to_vec();
        }
        let mut options = words.iter().take_while(|word| *word != b"--");
        if self.json && prints_json(&name) && !options.any(|word| word == b"--json") {
            words.insert(1, b"--json".to_vec());
        }
        let command = match Line::try_parse_from(words.into_iter().map(OsString::from_vec)) {
            Ok(line) => line.command,
            Err(help) if !help.use_stderr() => {
                if self.json {
                    report::json_line(out, &Help { text: help.to_string() })?;
                    self.ended(number, &name, Outcome::Done, out)?;
                } else {
                    write!(out, "{help}")?;
                }
                return Ok((Next::More, Outcome::Done));
            }
            Err(error) => {
                let text = error.to_string();
                let text = text.trim_start_matches("error: ").trim_end();
                return Err(Usage(text.to_owned()).into());
            }
        };
        match command {
            Command::Exit => Ok((Next::Leave, Outcome::Done)),
            Command::Cd { path } => {
                self.session.fs = self.session.fs.clone().with_current_directory(path)?;
                self.ended(number, &name, Outcome::Done, out)?;
                Ok((Next::More, Outcome::Done))
            }
            Command::Pwd(names) => {
                names.write(self.session.here().as_bytes(), out)?;
                names.end(out)?;
                self.ended(number, &name, Outcome::Done, out)?;
                Ok((Next::More, Outcome::Done))
            }
            Command::Verb(verb) => {
                let outcome = verb.run(&self.session, out)?;
                if !self.batch {
                    self.session.volume.sync()?;
                }
                self.ended(number, &name, outcome, out)?;
                Ok((Next::More, outcome))
            }
        }
    }

    /// Tells programs that a command is done: not every one has something to print.
    fn ended(&self, line: u64, command: &str, outcome: Outcome, out: &mut dyn Write) -> Result<()> {
        if self.json {
            let outcome = if outcome == Outcome::Done { "done" } else { "findings" };
            report::json_line(out, &Ended { line, command, outcome })?;
        }
        Ok(())
    }
}

/// Whether a command can print JSON.
fn prints_json(name: &str) -> bool {
    let line = Line::command();
    let command = line.find_subcommand(name);
    command.is_some_and(|command| command.get_arguments().any(|option| option.get_id() == "json"))
}

/// Adds the next line of standard input to `line`, without its end; whether there was one. The input
/// is not locked meanwhile: a command may read from it what follows.
fn read_line(line: &mut Vec<u8>) -> Result<bool> {
    let read = io::stdin().lock().read_until(b'\n', line).context("cannot read the script")?;
    if read > 0 && line.ends_with(b"\n") {
        line.pop();
        if line.ends_with(b"\r") {
            line.pop();
        }
    }
    Ok(read > 0)
}
