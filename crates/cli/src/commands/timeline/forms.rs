//! An event as a line, as a line of a body file, as JSON.

use super::super::found::joined;
use super::path;
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_recover::{Change, Event, Rights};
use undercroft_xfs::format::FileType;

/// The word for a change.
fn word(change: &Change) -> &'static str {
    match change {
        Change::Created => "created",
        Change::Resized { from, to } if from < to => "grown",
        Change::Resized { .. } => "shrunk",
        Change::Modified => "modified",
        Change::Rights { .. } => "rights",
        Change::Renamed { .. } => "renamed",
        Change::Linked => "linked",
        Change::Unlinked => "unlinked",
        Change::Removed => "removed",
    }
}

/// What else there is to say of a change.
fn detail(change: &Change) -> Option<String> {
    match change {
        Change::Resized { from, to } => Some(format!("{from} -> {to} bytes")),
        Change::Rights { from, to } => Some(format!("{} -> {}", rights(from), rights(to))),
        Change::Renamed { from } => Some(format!("from {}", text::name(&joined(from)))),
        _ => None,
    }
}

fn rights(rights: &Rights) -> String {
    format!("{:04o} {}:{}", rights.mode, rights.uid, rights.gid)
}

/// Prints an event as a line.
pub(super) fn print_line(event: &Event, out: &mut dyn Write) -> Result<()> {
    let time = text::time(event.time);
    let time = time.split_once('.').map_or(time.as_str(), |(seconds, _)| seconds);
    let name = text::name(&path(event));
    write!(out, "{time:>19}  {:<8}  {name}", word(&event.change))?;
    if let Some(detail) = detail(&event.change) {
        write!(out, "  {detail}")?;
    }
    Ok(writeln!(out)?)
}

/// Prints an event as a line of a body file. It has one of the four times; -1 stands for none.
pub(super) fn print_body(event: &Event, out: &mut dyn Write) -> Result<()> {
    let seconds = event.time.seconds;
    let [modified, changed, born] = match event.change {
        Change::Resized { .. } | Change::Modified => [seconds, -1, -1],
        Change::Created => [-1, -1, seconds],
        _ => [-1, seconds, -1],
    };
    let mut name = text::name(&path(event));
    match &event.change {
        Change::Created | Change::Modified => {}
        change => {
            let detail = detail(change).map_or(String::new(), |detail| format!(" {detail}"));
            name.push_str(&format!(" ({}{detail})", word(change)));
        }
    }
    // The bar ends a field.
    let name = name.replace('|', "\\x7c");
    let kind = event.kind.unwrap_or(FileType::Regular);
    let mode = text::mode(kind, event.mode.unwrap_or(0));
    let letter = if kind == FileType::Regular { "r" } else { &mode[..1] };
    writeln!(
        out,
        "0|{name}|{}|{letter}/{letter}{}|{}|{}|{}|-1|{modified}|{changed}|{born}",
        event.id.number,
        &mode[1..],
        event.uid,
        event.gid,
        event.size
    )?;
    Ok(())
}

/// An event as JSON.
#[derive(Serialize)]
pub(super) struct EventJson {
    time: String,
    event: &'static str,
    #[serde(flatten)]
    path: text::Name,
    /// The path begins with the root; else with the number of a directory.
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<text::Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rights_before: Option<String>,
    inode: u64,
    generation: u32,
    kind: Option<&'static str>,
    size: u64,
    mode: Option<String>,
    uid: u32,
    gid: u32,
}

impl EventJson {
    pub(super) fn new(event: &Event) -> Self {
        let change = &event.change;
        Self {
            time: text::time(event.time),
            event: word(change),
            path: text::Name::new(&path(event)),
            complete: event.path.as_ref().is_some_and(|path| path.is_complete),
            renamed_from: match change {
                Change::Renamed { from } => Some(text::Name::new(&joined(from))),
                _ => None,
            },
            size_before: match change {
                Change::Resized { from, .. } => Some(*from),
                _ => None,
            },
            rights_before: match change {
                Change::Rights { from, .. } => Some(rights(from)),
                _ => None,
            },
            inode: event.id.number.0,
            generation: event.id.generation,
            kind: event.kind.map(text::kind),
            size: event.size,
            mode: event.mode.map(|mode| format!("{mode:04o}")),
            uid: event.uid,
            gid: event.gid,
        }
    }
}
