//! What is told to who sits before the program.

use std::sync::OnceLock;

/// Is told what may be of interest and is no error, such as that something takes long.
pub type Note = fn(&str);

static NOTE: OnceLock<Note> = OnceLock::new();

/// Says who is told. The first call counts.
pub(crate) fn set(note: Note) {
    let _ = NOTE.set(note);
}

pub(crate) fn note(what: &str) {
    if let Some(note) = NOTE.get() {
        note(what);
    }
}
