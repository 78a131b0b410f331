//! Lines that are typed, with history and with completion.

use super::completion::Words;
use anyhow::Result;
use clap::Command;
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use undercroft_fs::FileSystem;

/// The prompt.
const PROMPT: &str = "undercroft> ";

/// Reads lines from the terminal.
pub(crate) struct LineEditor {
    editor: Editor<Words, DefaultHistory>,
}

impl LineEditor {
    /// An editor that completes the commands of a line, and paths.
    pub(crate) fn new(line: Command, fs: &FileSystem) -> Result<Self> {
        let mut editor = Editor::new()?;
        editor.set_helper(Some(Words { line, fs: fs.clone() }));
        Ok(Self { editor })
    }

    /// The next line, `None` at the end of the input. Paths start where `fs` says.
    pub(crate) fn read(&mut self, fs: &FileSystem) -> Result<Option<String>> {
        if let Some(words) = self.editor.helper_mut() {
            words.fs = fs.clone();
        }
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
