//! A difference as lines.

use crate::report;
use crate::text::{self, Name};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use undercroft_image::diff::{Change, Difference, Found};
use undercroft_source::{Device, EntryPath, Timestamp};
use undercroft_xfs::format;

/// Most bytes of the value of an attribute in a line.
const VALUE_MAX: usize = 80;

/// A path from the root.
fn path(path: &EntryPath) -> String {
    format!("/{}", text::name(path.as_bytes()))
}

/// One line for each thing that differs, with its values.
pub(super) fn lines(
    difference: &Difference,
    (left, right): (&str, &str),
    out: &mut dyn Write,
) -> io::Result<()> {
    let path = path(&difference.path);
    match &difference.found {
        Found::OnlyLeft(kind) => writeln!(out, "{path}: only in {left} ({kind})"),
        Found::OnlyRight(kind) => writeln!(out, "{path}: only in {right} ({kind})"),
        Found::Changed(changes) => changes
            .iter()
            .try_for_each(|change| writeln!(out, "{path}: {}", words(change, (left, right)))),
    }
}

/// One line that says what differs.
pub(super) fn brief(
    difference: &Difference,
    names: (&str, &str),
    out: &mut dyn Write,
) -> io::Result<()> {
    let Found::Changed(changes) = &difference.found else { return lines(difference, names, out) };
    let mut words: Vec<_> = changes.iter().map(Change::word).collect();
    words.dedup();
    writeln!(out, "{}: {}", path(&difference.path), words.join(", "))
}

fn time(time: &Timestamp) -> String {
    text::time(format::Timestamp { seconds: time.seconds, nanoseconds: time.nanoseconds })
}

fn value(value: Option<&Vec<u8>>) -> String {
    let Some(value) = value else { return "none".to_owned() };
    let cut = if value.len() > VALUE_MAX { "..." } else { "" };
    format!("\"{}\"{cut}", value[..value.len().min(VALUE_MAX)].escape_ascii())
}

fn links(first: Option<&EntryPath>, tree: &str) -> String {
    first.map_or_else(
        || format!("a file of its own in {tree}"),
        |first| format!("the same file as {} in {tree}", path(first)),
    )
}

/// A change with its values.
fn words(change: &Change, (left, right): (&str, &str)) -> String {
    match change {
        Change::Kind(one, other) => format!("{one} -> {other}"),
        Change::Mode(one, other) => format!("mode {one:o} -> {other:o}"),
        Change::Owner(one, other) => {
            format!("owner {}:{} -> {}:{}", one.0, one.1, other.0, other.1)
        }
        Change::Mtime(one, other) => format!("mtime {} -> {}", time(one), time(other)),
        Change::Size(one, other) => format!("size {one} -> {other}"),
        Change::Content(Some(at)) => format!("content from byte {at}"),
        Change::Content(None) => "content".to_owned(),
        Change::Target(one, other) => {
            format!("target {} -> {}", text::name(one), text::name(other))
        }
        Change::Device(one, other) => {
            format!("device {}:{} -> {}:{}", one.major, one.minor, other.major, other.minor)
        }
        Change::Xattr(name, one, other) => format!(
            "attribute {} {} -> {}",
            text::name(name),
            value(one.as_ref()),
            value(other.as_ref())
        ),
        Change::Links(one, other) => {
            format!("{}, {}", links(one.as_ref(), left), links(other.as_ref(), right))
        }
        Change::Holes(at) => format!("holes from byte {at}"),
    }
}

/// A change as JSON.
#[derive(Serialize)]
struct Line<'a> {
    path: Name,
    change: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    name: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    at: Value,
    left: Value,
    right: Value,
}

/// A JSON object a line for each thing that differs.
pub(super) fn json(difference: &Difference, out: &mut dyn Write) -> io::Result<()> {
    // Of directories it is "/".
    let path = [b"/", difference.path.as_bytes()].concat();
    let mut line = |change: &str, name: Value, at: Option<u64>, left: Value, right: Value| {
        let (path, at) = (Name::new(&path), at.map_or(Value::Null, Value::from));
        report::json_line(out, &Line { path, change, name, at, left, right })
    };
    let changes = match &difference.found {
        Found::OnlyLeft(kind) => return line("only", Value::Null, None, json!(kind), Value::Null),
        Found::OnlyRight(kind) => return line("only", Value::Null, None, Value::Null, json!(kind)),
        Found::Changed(changes) => changes,
    };
    for change in changes {
        let (name, at, left, right) = values(change);
        line(change.word(), name, at, left, right)?;
    }
    Ok(())
}

/// Name, place and values of a change as JSON.
fn values(change: &Change) -> (Value, Option<u64>, Value, Value) {
    let plain = |left: Value, right: Value| (Value::Null, None, left, right);
    let owner = |owner: &(u32, u32)| json!({"uid": owner.0, "gid": owner.1});
    let device = |device: &Device| json!({"major": device.major, "minor": device.minor});
    let bytes = |bytes: &[u8]| json!(Name::new(bytes));
    let some = |value: &Option<Vec<u8>>| value.as_deref().map_or(Value::Null, bytes);
    let path = |path: &Option<EntryPath>| {
        path.as_ref().map_or(Value::Null, |path| bytes(&[b"/", path.as_bytes()].concat()))
    };
    match change {
        Change::Kind(one, other) => plain(json!(one), json!(other)),
        Change::Mode(one, other) => plain(json!(one), json!(other)),
        Change::Owner(one, other) => plain(owner(one), owner(other)),
        Change::Mtime(one, other) => plain(json!(time(one)), json!(time(other))),
        Change::Size(one, other) => plain(json!(one), json!(other)),
        Change::Content(at) => (Value::Null, *at, Value::Null, Value::Null),
        Change::Holes(at) => (Value::Null, Some(*at), Value::Null, Value::Null),
        Change::Target(one, other) => plain(bytes(one), bytes(other)),
        Change::Device(one, other) => plain(device(one), device(other)),
        Change::Xattr(name, one, other) => (bytes(name), None, some(one), some(other)),
        Change::Links(one, other) => plain(path(one), path(other)),
    }
}
