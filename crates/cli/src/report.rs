//! How a run ends: exit status and message.

use crate::failure::{Failure, Usage};
use crate::remedy;
use crate::text;
use crate::tips;
use rustix::io::Errno;
use serde::Serialize;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::process::ExitCode;
use undercroft_fs::PathError;
use undercroft_xfs::Error as VolumeError;

/// How a command ended that was able to do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As asked.
    Done,
    /// A check found faults.
    Findings,
    /// The reader of the output closed it before its end, and misses some of it.
    Cut,
    /// A program that was run has exited with this status.
    Status(u8),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Findings | Outcome::Cut => Self::FAILURE,
            Outcome::Status(status) => Self::from(status),
        }
    }
}

/// Prints `value` as one line of JSON.
pub(crate) fn json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Exit status of wrong usage, as `clap` has it.
const WRONG_USAGE: u8 = 2;

/// The line that says what failed.
pub(crate) fn failure_line(error: &anyhow::Error, json: bool) -> String {
    line(&Failure::new(error, message(error)), json)
}

fn line(failure: &Failure, json: bool) -> String {
    let line = if json { serde_json::to_string(failure).ok() } else { None };
    line.unwrap_or_else(|| format!("error: {}", shown(failure)))
}

/// The message, as a terminal can have it: names and words of others may be in it. Messages on usage have
/// lines of their own.
fn shown(failure: &Failure) -> String {
    let lines = failure.message().split('\n').map(text::visible);
    let lines: Vec<String> = lines.collect();
    lines.join(if failure.is_usage() { "\n" } else { "\\n" })
}

/// Tells people something on standard error, which may have names and words of others.
pub(crate) fn note(what: impl Display) {
    eprintln!("note: {}", text::visible(&what.to_string()));
}

/// The same, where the result may not be what was wanted.
pub(crate) fn warning(what: impl Display) {
    eprintln!("warning: {}", text::visible(&what.to_string()));
}

/// Prints an error with its causes, or as JSON.
pub(crate) fn failure(error: &anyhow::Error, json: bool) -> ExitCode {
    let failure = Failure::new(error, message(error));
    eprintln!("{}", line(&failure, json));
    if failure.is_usage() { ExitCode::from(WRONG_USAGE) } else { ExitCode::FAILURE }
}

/// Ends a run whose arguments could not be parsed, or that asks for help.
pub(crate) fn unparsed(error: &clap::Error, json: bool) -> ExitCode {
    let mut text = error.to_string();
    if let Some(way) = tips::of(error) {
        text = format!("{}: {way}", text.lines().next().unwrap_or_default());
    }
    if error.use_stderr() && (json || tips::of(error).is_some() || shortened(&text) != text) {
        let text = text.trim_start_matches("error: ").trim_end();
        // On a terminal that is a paragraph of its own.
        let text = if json { text.split("\n\n").next().unwrap_or(text) } else { text };
        return failure(&Usage(text.to_owned()).into(), json);
    }
    // A stream that is closed gets no message.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(WRONG_USAGE) } else { ExitCode::SUCCESS }
}

/// The chain on one line, the innermost cause last, and what to do about it; a cause that its effect
/// already quotes is not repeated.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        if let Some(image) = full_host(cause) {
            let part = if text.is_empty() { "" } else { ": " };
            let _ = write!(
                text,
                "{part}no space left on the file system that holds {image}: make room there (the \
                 image is sparse: any change takes room for its journal, `rm` as well)"
            );
            break;
        }
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {cause}");
        }
    }
    // The outermost knows most.
    if let Some(remedy) = error.chain().find_map(remedy::of) {
        let _ = write!(text, "; {remedy}");
    }
    shortened(&text)
}

/// The image whose file system has no space for the data written to it.
fn full_host<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e str> {
    let error = cause.downcast_ref::<PathError>().map(PathError::error);
    match error.or_else(|| cause.downcast_ref::<VolumeError>())? {
        VolumeError::Device(error) if error.is_no_space() => Some(&error.device),
        // What stopped the volume is known in words alone.
        VolumeError::Poisoned(what) | VolumeError::NotWritten { what, .. }
            if what.ends_with(&io::Error::from(Errno::NOSPC).to_string()) =>
        {
            Some("the image")
        }
        _ => None,
    }
}

/// Longest word of a message, in bytes. Longer ones are paths, or words typed by the user.
const WORD_MAX: usize = 200;

/// A message whose long words have lost their middles.
fn shortened(text: &str) -> String {
    let mut short = String::with_capacity(text.len().min(1 << 16));
    for part in text.split_inclusive(char::is_whitespace) {
        if part.trim_end().len() <= WORD_MAX {
            short.push_str(part);
            continue;
        }
        let (mut head, mut tail) = (WORD_MAX / 2 - 2, part.len() - (WORD_MAX / 2 - 2));
        while !part.is_char_boundary(head) {
            head -= 1;
        }
        while !part.is_char_boundary(tail) {
            tail += 1;
        }
        short.extend([&part[..head], "...", &part[tail..]]);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_follow_their_effects_once() {
        let error = io::Error::other("disk on fire");
        let error = Err::<(), _>(error).context("cannot read a").context("b: cannot read a");
        assert_eq!(message(&error.unwrap_err()), "b: cannot read a: disk on fire");
    }

    #[test]
    fn long_words_lose_their_middles() {
        let kept = format!("{} {}", "a".repeat(200), "\u{fc}".repeat(100));
        assert_eq!(shortened(&kept), kept);
        let long = format!("no {}: {} end", "ab".repeat(5_000_000), "\u{fc}".repeat(101));
        let short = shortened(&long);
        let mut words = short.split(' ');
        assert_eq!(words.next(), Some("no"));
        let word = words.next().unwrap();
        assert!(word.len() <= 200 && word.starts_with("abab") && word.ends_with("ab:"), "{word}");
        let word = words.next().unwrap();
        assert!(word.len() <= 200 && word.contains("\u{fc}...\u{fc}"), "{word}");
        assert_eq!((words.next(), words.next()), (Some("end"), None));
    }
}
