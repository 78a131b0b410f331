//! Patterns of paths.
//!
//! `*` and `?` match within a component, `**` across components, `[a-z]` one of a set, `{a,b}` either.
//! A pattern without a slash is compared with the last component at any depth (`*.o`), one with a
//! slash with the whole path relative to the root (`src/*.o`, `/build`). A trailing slash is ignored.

use globset::{Glob, GlobBuilder};

/// Compiles a pattern.
pub(crate) fn compile(text: &str) -> Result<Glob, globset::Error> {
    let anchored = match text.trim_end_matches('/') {
        name if !name.contains('/') => format!("**/{name}"),
        path => path.trim_start_matches('/').to_owned(),
    };
    GlobBuilder::new(&anchored).literal_separator(true).build()
}

/// The components that every path begins with that an anchored pattern matches.
pub(crate) fn leading(glob: &Glob) -> Vec<u8> {
    let special = |component: &&str| !component.contains(['*', '?', '[', '{', '\\']);
    let components: Vec<&str> = glob.glob().split('/').take_while(special).collect();
    components.join("/").into_bytes()
}
