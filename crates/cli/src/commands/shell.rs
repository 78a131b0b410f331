//! `undercroft shell`.

use super::verb::InShell;
use crate::failure::Usage;
use crate::image::ImageArgs;
use crate::line_editor::LineEditor;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::words::{self, Unfinished};
use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::ffi::OsStringExt;

/// Run many commands on one volume: those typed, or a script on standard input.
///
/// Commands are those of the command line without the name of the image; words are quoted as in
/// other shells, `#` begins a comment, a backslash at the end continues a line. Names of any bytes
/// can be written as `ls` prints them, `caf\xe9` for one; with a space in them, in double quotes.
/// What a command prints is there when it is done; what it changes is durable then, unless --batch
/// is given. A script ends at the first command that fails; `exit` or the end of the
/// input ends the shell, and leaves the volume unmounted.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) image: ImageArgs,

    /// Make the changes durable at `sync` and at the end only: faster, and what is lost on the way
    /// is lost from the end on.
    #[arg(long)]
    batch: bool,

    /// Refuse commands that change the volume.
    #[arg(long)]
    read_only: bool,
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
        return Shell { session: Session::new(&volume)?, batch: true }.run(out);
    }
    let edit = args.image.open_for_change()?;
    let shell = Shell { session: Session::new(edit.volume())?, batch: args.batch };
    let done = shell.run(out);
    // What was done before an error stays done; the first error counts.
    let closed = edit.close();
    done.and_then(|outcome| closed.map(|()| outcome))
}

struct Shell<'v> {
    session: Session<'v>,
    batch: bool,
}

impl Shell<'_> {
    fn run(&self, out: &mut dyn Write) -> Result<Outcome> {
        if io::stdin().is_terminal() { self.converse(out) } else { self.script(out) }
    }

    /// A script: ends at the first error, which names the line.
    fn script(&self, out: &mut dyn Write) -> Result<Outcome> {
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
            let at = || format!("line {first} of the script");
            let (next, ended) = self.line(&line, out).with_context(at)?;
            // Whoever reads may wait for it before the next line.
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
    fn converse(&self, out: &mut dyn Write) -> Result<Outcome> {
        let mut names: Vec<String> =
            Line::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        names.push("help".into());
        let mut editor = LineEditor::new(&self.session, names)?;
        while let Some(line) = editor.read()? {
            let next = self.line(line.as_bytes(), out);
            out.flush()?;
            match next {
                Ok((Next::More, _)) => {}
                Ok((Next::Leave, _)) => break,
                Err(error) => {
                    report::failure(&error, false);
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Runs a line.
    fn line(&self, line: &[u8], out: &mut dyn Write) -> Result<(Next, Outcome)> {
        let words = words::split(line).map_err(|unfinished| match unfinished {
            Unfinished::Quotation => Usage("a quotation mark is left open".into()),
            Unfinished::Backslash => Usage("nothing follows the backslash at the end".into()),
        })?;
        if words.is_empty() {
            return Ok((Next::More, Outcome::Done));
        }
        let command = match Line::try_parse_from(words.into_iter().map(OsString::from_vec)) {
            Ok(line) => line.command,
            Err(help) if !help.use_stderr() => {
                write!(out, "{help}")?;
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
            Command::Verb(verb) => {
                let outcome = verb.run(&self.session, out)?;
                if !self.batch {
                    self.session.volume.sync()?;
                }
                Ok((Next::More, outcome))
            }
        }
    }
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
