//! Labels of files by the rules of an SELinux policy.
//!
//! [`FileContexts`] reads `file_contexts` with the files beside it, and says which label a path of a
//! kind gets, as `matchpathcon` and `setfiles` do: entries without an expression come before those
//! with one, and among equals the last counts. No policy needs to be loaded, and none is asked
//! whether it knows a label.
//!
//! An entry is found by the text before its first special character, so that the cost of a path
//! follows the entries that begin as the path does, not all of them.

mod error;
mod expression;
mod index;
mod spec;
mod substitution;
mod translation;

pub use error::{LabelError, LabelProblem};
pub use spec::LabelledKind;

use index::Index;
use spec::{Context, Spec};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use substitution::Substitutions;

/// The attribute that holds a label.
pub(crate) const ATTRIBUTE: &[u8] = b"security.selinux";
/// Where a policy directory has its `file_contexts`.
const IN_POLICY: &str = "contexts/files/file_contexts";
/// Most bytes of one file; those of distributions have less than a mebibyte.
const MAX_FILE: u64 = 64 << 20;

/// The labels of a policy by path and kind.
#[derive(Debug, Default)]
pub struct FileContexts {
    /// In the order of precedence: the last that matches counts.
    specs: Vec<Spec>,
    index: Index,
    /// `.subs`, then `.subs_dist`.
    substitutions: [Substitutions; 2],
}

impl FileContexts {
    /// Reads `file`, and of the files beside it those that are there: `.homedirs` and `.local` with
    /// further entries, `.subs` and `.subs_dist` with equivalent paths. With `policy`, a policy
    /// directory, these are the ones of its `contexts/files`. A `file` that is a directory is a
    /// policy directory itself.
    ///
    /// # Errors
    /// A file that cannot be read, or a line of it that is wrong.
    pub fn read(file: &Path, policy: Option<&Path>) -> Result<Self, LabelError> {
        let file = if file.is_dir() { file.join(IN_POLICY) } else { file.to_owned() };
        let main = contents(&file)?;
        let base = policy.map_or_else(|| file.clone(), |policy| policy.join(IN_POLICY));
        if policy.is_some() {
            // Names a directory that is none.
            contents(&base)?;
        }
        let mut texts = vec![(file, main)];
        let beside = |suffix: &str| {
            let mut name = base.clone().into_os_string();
            name.push(suffix);
            let path = PathBuf::from(name);
            match contents(&path) {
                Err(LabelError::Read { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    Ok((path, Vec::new()))
                }
                read => read.map(|text| (path, text)),
            }
        };
        texts.push(beside(".homedirs")?);
        texts.push(beside(".local")?);
        let substitutions = [beside(".subs")?, beside(".subs_dist")?];
        let texts = texts.iter().map(|(path, text)| (path.as_path(), &text[..]));
        Self::parse(texts, substitutions.each_ref().map(|(_, text)| &text[..]))
    }

    /// Entries from texts, of which later ones count more, and the texts of `.subs` and
    /// `.subs_dist`. The paths name the texts in errors.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse<'a>(
        texts: impl IntoIterator<Item = (&'a Path, &'a [u8])>,
        substitutions: [&[u8]; 2],
    ) -> Result<Self, LabelError> {
        let mut reader = spec::Reader::default();
        for (path, text) in texts {
            for (line, bytes) in text.split(|&byte| byte == b'\n').enumerate() {
                reader.line(bytes).map_err(|problem| LabelError::Line {
                    path: path.into(),
                    line: line + 1,
                    problem,
                })?;
            }
        }
        let specs = reader.finish();
        let index = Index::new(&specs);
        Ok(Self { specs, index, substitutions: substitutions.map(Substitutions::parse) })
    }

    /// The label of a path, which begins with a slash; `None` where the policy has none for it.
    pub fn lookup(&self, path: &[u8], kind: LabelledKind) -> Option<&[u8]> {
        let mut path = Cow::Borrowed(path);
        for substitutions in &self.substitutions {
            if let Some(other) = substitutions.apply(&path) {
                path = Cow::Owned(other);
            }
        }
        match self.index.find(&self.specs, &path, kind)?.context() {
            Context::Label(label) => Some(label),
            Context::None => None,
        }
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, LabelError> {
    let failed = |source| LabelError::Read { path: path.into(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(failed(io::Error::other(format!("it has more than {MAX_FILE} bytes"))));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
