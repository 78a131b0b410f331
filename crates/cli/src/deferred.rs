//! Commands whose arguments are put together when they are called: those of all commands take more
//! time than all else that the program does to start.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsStr;
use std::ops::Deref;
use std::sync::OnceLock;

/// The command that is called, where no other is of interest.
static CALLED: OnceLock<String> = OnceLock::new();

/// Says which command is called, by the first argument. Lists of all commands need those whole.
pub(crate) fn called(word: Option<&OsStr>) {
    let word = word.and_then(OsStr::to_str);
    let is_one = |word: &&str| !word.starts_with('-') || matches!(*word, "-V" | "--version");
    let lists = ["help", "man", "completions"];
    if let Some(word) = word.filter(is_one).filter(|word| !lists.contains(word)) {
        // It is said once.
        let _ = CALLED.set(word.to_owned());
    }
}

/// Adds arguments to a command: now, or when it is called.
pub(crate) fn augment(command: Command, arguments: fn(Command) -> Command) -> Command {
    let is_another = CALLED.get().is_some_and(|called| called != command.get_name());
    if is_another { command.defer(arguments) } else { arguments(command) }
}

/// Arguments of a command of the program.
pub(crate) struct Deferred<T>(Box<T>);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        augment(command, T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(Box::new(T::from_arg_matches(matches)?)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
