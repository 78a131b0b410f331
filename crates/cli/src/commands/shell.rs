//! `undercroft shell`.

use super::verb::InShell;
use crate::image::ImageArgs;
use crate::line_editor::LineEditor;
use crate::report::{self, Outcome};
use crate::session::Session;
use anyhow::{Context, Result, bail};
use clap::{CommandFactory, Parser};
use std::io::{self, BufRead, IsTerminal, Write};

/// Run many commands on one volume: those typed, or a script on standard input.
///
/// Commands are those of the command line without the name of the image; words are quoted as in
/// other shells, `#` begins a comment. Each command is durable when it is done, unless --batch is
/// given. A script ends at the first command that fails; `exit` or the end of the input ends the
/// shell, and leaves the volume unmounted.
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
        for (number, line) in (1_u64..).zip(io::stdin().lock().lines()) {
            let at = || format!("line {number} of the script");
            let (next, ended) = self.line(&line.with_context(at)?, out).with_context(at)?;
            if ended != Outcome::Done {
                outcome = ended;
            }
            if next == Next::Leave {
                break;
            }
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
            let next = self.line(&line, out);
            out.flush()?;
            match next {
                Ok((Next::More, _)) => {}
                Ok((Next::Leave, _)) => break,
                Err(error) => {
                    report::failure(&error);
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Runs a line.
    fn line(&self, line: &str, out: &mut dyn Write) -> Result<(Next, Outcome)> {
        let words = shlex::split(line).context("a quotation mark is left open")?;
        if words.is_empty() {
            return Ok((Next::More, Outcome::Done));
        }
        let command = match Line::try_parse_from(words) {
            Ok(line) => line.command,
            Err(help) if !help.use_stderr() => {
                write!(out, "{help}")?;
                return Ok((Next::More, Outcome::Done));
            }
            Err(error) => {
                let text = error.to_string();
                bail!("{}", text.trim_start_matches("error: ").trim_end());
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
