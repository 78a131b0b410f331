//! Lines that are typed, with history and with completion of commands and of paths in the volume.

use crate::session::Session;
use anyhow::Result;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

/// The prompt.
const PROMPT: &str = "undercroft> ";

/// Reads lines from the terminal.
pub(crate) struct LineEditor<'s> {
    editor: Editor<Words<'s>, DefaultHistory>,
}

impl<'s> LineEditor<'s> {
    /// An editor that completes these commands, and the paths of the volume of a session.
    pub(crate) fn new(session: &'s Session<'s>, commands: Vec<String>) -> Result<Self> {
        let mut editor = Editor::new()?;
        editor.set_helper(Some(Words { session, commands }));
        Ok(Self { editor })
    }

    /// The next line, `None` at the end of the input.
    pub(crate) fn read(&mut self) -> Result<Option<String>> {
        loop {
            match self.editor.readline(PROMPT) {
                Ok(line) => {
                    self.editor.add_history_entry(&line)?;
                    return Ok(Some(line));
                }
                // A line that was given up.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What lines are made of.
struct Words<'s> {
    session: &'s Session<'s>,
    commands: Vec<String>,
}

impl Words<'_> {
    /// The words that a line up to the cursor can go on with, and where the last one starts.
    fn candidates(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &line[start..];
        if line[..start].trim().is_empty() {
            let known = self.commands.iter().filter(|name| name.starts_with(word));
            return (start, known.map(|name| format!("{name} ")).collect());
        }
        (start, self.paths(word).unwrap_or_default())
    }

    /// The paths in the volume that begin like `word`; directories end in a slash.
    fn paths(&self, word: &str) -> Result<Vec<String>> {
        let (directory, begin) = word.split_at(word.rfind('/').map_or(0, |at| at + 1));
        let listed = if directory.is_empty() { "/" } else { directory };
        let mut found = Vec::new();
        for entry in self.session.fs.read_dir(listed)? {
            let entry = entry?;
            // A name that needs quotes is not completed.
            let special = |letter: char| letter.is_control() || " '\"\\#".contains(letter);
            let Some(name) = entry.file_name().to_str() else { continue };
            if name.starts_with(begin) && !name.contains(special) {
                let end = if entry.metadata().is_dir() { "/" } else { " " };
                found.push(format!("{directory}{name}{end}"));
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

impl Completer for Words<'_> {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(&line[..position]))
    }
}

impl Hinter for Words<'_> {
    type Hint = String;
}

impl Highlighter for Words<'_> {}
impl Validator for Words<'_> {}
impl Helper for Words<'_> {}
