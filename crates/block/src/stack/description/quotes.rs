//! Names in quotes.

/// A name of any characters as it stands in a description.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""))
}
