//! Pictures of the book name functions and types of the code; those must be in the file that the picture
//! says.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::texts;

/// Checks all pictures below `docs`.
pub(super) fn check(root: &Path) -> Result<()> {
    let (mut names, mut faults) = (0, String::new());
    for path in pictures(&root.join("docs"))? {
        let picture =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for (file, name) in named(&picture) {
            names += 1;
            let mut text = String::new();
            let place = root.join(file);
            if place.is_dir() {
                texts::walk(root, &place, &mut |_, source| text += source)?;
            } else {
                text = fs::read_to_string(&place).unwrap_or_default();
            }
            if let Some(missing) = missing(&text, name) {
                faults += &format!("\n  {}: no {missing} in {file}", path.display());
            }
        }
    }
    ensure!(faults.is_empty(), "pictures of code that is not there:{faults}");
    println!("{names} names in pictures are in the code");
    Ok(())
}

fn pictures(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(pictures(&path)?);
        } else if path.extension().is_some_and(|end| end == "svg") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Files and the names that a picture has of them.
fn named(picture: &str) -> impl Iterator<Item = (&str, &str)> {
    picture.split("data-file=\"").skip(1).filter_map(|rest| {
        let (file, rest) = rest.split_once('"')?;
        let (_, rest) = rest.split_once('>')?;
        Some((file, rest.split('<').next()?))
    })
}

/// The part of a path of names that is no word of a text.
fn missing<'n>(text: &str, name: &'n str) -> Option<&'n str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    name.split("::").find(|part| !text.split(|c| !is_part(c)).any(|word| word == *part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_words() {
        let picture = "<text class=\"code\" data-file=\"a/b.rs\" x=\"1\">Plug::submit</text>";
        assert_eq!(named(picture).collect::<Vec<_>>(), [("a/b.rs", "Plug::submit")]);
        assert_eq!(missing("impl Plug { fn submit(&self) }", "Plug::submit"), None);
        assert_eq!(missing("impl Plug { fn submit_all(&self) }", "Plug::submit"), Some("submit"));
    }
}
