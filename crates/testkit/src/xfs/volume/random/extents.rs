//! The kernel's map of the extents of files, without their places.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A range of a file, in blocks: first, behind the last, and whether it is unwritten or shared.
type Range = (u64, u64, bool, bool);

/// The extents of all files below a directory, by path; neighbours that differ in nothing are one.
pub(super) fn of(root: &Path) -> BTreeMap<String, Vec<Range>> {
    let mut list = Command::new("bash");
    let script = "find . -type f -print0 | sort -z | xargs -0 -r -n 500 filefrag -v 2> /dev/null";
    let output = list.args(["-c", script]).current_dir(root).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut files = BTreeMap::new();
    let (mut path, mut ranges): (String, Vec<Range>) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("File size of ") {
            let name = rest.rsplit_once(" is ").map_or(rest, |(name, _)| name);
            files
                .insert(std::mem::replace(&mut path, name.to_owned()), std::mem::take(&mut ranges));
        } else if let Some(range) = range(line) {
            match ranges.last_mut() {
                Some(last) if last.1 == range.0 && (last.2, last.3) == (range.2, range.3) => {
                    last.1 = range.1;
                }
                _ => ranges.push(range),
            }
        }
    }
    files.insert(path, ranges);
    files
}

/// A line such as `   0:        0..       4:         24..        28:      5:   shared,eof`.
fn range(line: &str) -> Option<Range> {
    let mut fields = line.split(':');
    fields.next()?.trim().parse::<u64>().ok()?;
    let (first, last) = fields.next()?.split_once("..")?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<u64>().ok()?);
    let flags = line.rsplit(':').next()?;
    Some((first, last + 1, flags.contains("unwritten"), flags.contains("shared")))
}
