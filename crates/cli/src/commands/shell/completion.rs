//! What the last word of a line can go on with: commands, options, paths in the volume and on this
//! machine. Paths are completed as `ls` prints them, in quotation marks where they need those.

use super::words::{self, Unfinished};
use crate::text;
use anyhow::Result;
use clap::{Arg, Command, ValueHint};
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use undercroft_fs::FileSystem;

/// What lines are made of.
pub(crate) struct Words {
    /// The commands.
    pub(crate) line: Command,
    /// The volume, and its current directory.
    pub(crate) fs: FileSystem,
}

impl Words {
    /// The words that a line up to the cursor can go on with, and where the last one starts.
    fn candidates(&self, line: &str) -> (usize, Vec<String>) {
        let start = start_of_word(line);
        let before = words::split(&line.as_bytes()[..start]).unwrap_or_default();
        let Some(word) = complete_word(&line[start..]) else { return (start, Vec::new()) };
        let Some((command, arguments)) = before.split_first() else {
            return (start, self.commands(&word));
        };
        let command = String::from_utf8_lossy(command);
        if matches!(&*command, "help" | "?") {
            return (start, self.commands(&word));
        }
        let command = self.line.find_subcommand(&*command);
        if let Some(command) = command.filter(|_| word.starts_with(b"-")) {
            return (start, options(command, &word));
        }
        let is_of_machine =
            command.is_some_and(|command| takes_path_of_machine(command, arguments));
        let listed = if is_of_machine { machine_paths(&word) } else { self.paths(&word) };
        (start, listed.unwrap_or_default())
    }

    fn commands(&self, word: &[u8]) -> Vec<String> {
        let names = self.line.get_subcommands().flat_map(Command::get_name_and_visible_aliases);
        let known = names.chain(["help"]).filter(|name| name.as_bytes().starts_with(word));
        let mut names: Vec<String> = known.map(|name| format!("{name} ")).collect();
        names.sort_unstable();
        names
    }

    /// The paths in the volume that begin like a word; directories end in a slash.
    fn paths(&self, word: &[u8]) -> Result<Vec<String>> {
        let (directory, begin) = split_path(word);
        let listed = if directory.is_empty() { b"." } else { directory };
        let mut found = Vec::new();
        for entry in self.fs.read_dir(OsStr::from_bytes(listed))? {
            let entry = entry?;
            let name = entry.file_name().as_bytes();
            if name.starts_with(begin) {
                found.push(candidate(directory, name, entry.metadata().is_dir()));
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// The paths of this machine that begin like a word.
fn machine_paths(word: &[u8]) -> Result<Vec<String>> {
    let (directory, begin) = split_path(word);
    let listed = if directory.is_empty() { b"." } else { directory };
    let mut found = Vec::new();
    for entry in Path::new(OsStr::from_bytes(listed)).read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_bytes().starts_with(begin) {
            let is_directory = entry.path().is_dir();
            found.push(candidate(directory, name.as_bytes(), is_directory));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// A path up to its last slash, and what is behind that.
fn split_path(word: &[u8]) -> (&[u8], &[u8]) {
    word.split_at(word.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1))
}

/// A path as it is typed.
fn candidate(directory: &[u8], name: &[u8], is_directory: bool) -> String {
    if is_directory {
        let path = text::quoted(&[directory, name, b"/"].concat());
        // Left open, so that it can go on.
        return path.strip_suffix('\'').map_or(path.clone(), str::to_owned);
    }
    format!("{} ", text::quoted(&[directory, name].concat()))
}

/// Where the last word of a line starts: behind the last white space that is not quoted.
fn start_of_word(line: &str) -> usize {
    let spaces = line.rmatch_indices([' ', '\t']);
    let is_end = |at: &usize| {
        // White space that belongs to the word before it makes a longer word.
        let with = words::split(&line.as_bytes()[..*at + 1]);
        with.is_ok() && with == words::split(&line.as_bytes()[..*at])
    };
    spaces.map(|(at, _)| at).find(is_end).map_or(0, |at| at + 1)
}

/// The bytes of a word whose quotation mark may be open still.
fn complete_word(word: &str) -> Option<Vec<u8>> {
    let closed = ["", "'", "\""].iter().find_map(|mark| {
        let words = words::split(format!("{word}{mark}").as_bytes());
        (words != Err(Unfinished::Quotation)).then_some(words)
    });
    Some(closed?.ok()?.pop().unwrap_or_default())
}

/// The options of a command that begin like a word.
fn options(command: &Command, word: &[u8]) -> Vec<String> {
    let long = |option: &Arg| Some(format!("--{} ", option.get_long()?));
    let visible = command.get_arguments().filter(|option| !option.is_hide_set());
    let known = visible.filter_map(long).chain(["--help ".to_owned()]);
    let mut options: Vec<String> =
        known.filter(|option| option.as_bytes().starts_with(word)).collect();
    options.sort_unstable();
    options.dedup();
    options
}

/// Whether the next argument of a command is a path of this machine.
fn takes_path_of_machine(command: &Command, arguments: &[Vec<u8>]) -> bool {
    let is_option = |word: &&Vec<u8>| word.starts_with(b"-") && word.len() > 1;
    let index = arguments.iter().filter(|word| !is_option(word)).count();
    let positional = command.get_positionals().nth(index);
    positional.is_some_and(|argument| argument.get_value_hint() != ValueHint::Unknown)
}

impl Completer for Words {
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

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}
