//! The Debian archives that the machine's own apt configuration names, in both notations of
//! sources.list(5). A mirror, a proxy or a local copy that serves the machine serves us too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// One archive, and the key that its index is signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    /// The base URI, as apt takes it.
    pub(crate) uri: String,
    /// A key file or key text as in the `Signed-By` field; `None` is apt's own key ring.
    pub(crate) signed_by: Option<String>,
}

impl Archive {
    /// The archive's `suite` in deb822 notation.
    pub(crate) fn stanza(&self, suite: &str, signed_by: Option<&str>) -> String {
        let mut stanza =
            format!("Types: deb\nURIs: {}\nSuites: {suite}\nComponents: main\n", self.uri);
        if let Some(key) = signed_by.or(self.signed_by.as_deref()) {
            stanza.push_str(&format!("Signed-By: {key}\n"));
        }
        stanza
    }
}

/// The archives with the main component of a Debian release, in the order of the configuration.
/// `etc` is apt's configuration directory, `codename` the release that the machine runs.
pub(crate) fn archives(etc: &Path, codename: &str) -> Result<Vec<Archive>> {
    let mut files = vec![etc.join("sources.list")];
    let parts = etc.join("sources.list.d");
    if parts.is_dir() {
        let mut names = fs::read_dir(&parts)
            .with_context(|| format!("cannot list {}", parts.display()))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<PathBuf>, _>>()?;
        names.sort();
        files.extend(names);
    }
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let archives = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => one_line(&text, codename),
            Some("sources") => deb822(&text, codename),
            _ => continue,
        };
        for archive in archives {
            if !found.contains(&archive) {
                found.push(archive);
            }
        }
    }
    if found.is_empty() {
        bail!(
            "no apt source in {} serves component main of Debian suite {codename}; \
             add the machine's Debian mirror there",
            etc.display()
        );
    }
    Ok(found)
}

/// Whether `suites` names the release itself, under its code name or its role. Security and update
/// suites may live in an archive without the development suite, so they do not count.
fn serves_release(suites: &str, codename: &str) -> bool {
    suites.split_whitespace().any(|suite| {
        suite == codename
            || matches!(suite, "stable" | "oldstable" | "testing" | "unstable" | "sid")
    })
}

/// Reads the one-line notation: `deb [options] uri suite component...`.
fn one_line(text: &str, codename: &str) -> Vec<Archive> {
    let mut archives = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(rest) = line.strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t']))
        else {
            continue;
        };
        let rest = rest.trim_start();
        let (options, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((options, rest)) => (options, rest),
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        let (Some(uri), Some(suite)) = (words.next(), words.next()) else { continue };
        if serves_release(suite, codename) && words.any(|component| component == "main") {
            let signed_by = options
                .split_whitespace()
                .find_map(|option| option.strip_prefix("signed-by="))
                .map(|keys| keys.replace(',', " "));
            archives.push(Archive { uri: uri.to_owned(), signed_by });
        }
    }
    archives
}

/// Reads the deb822 notation: stanzas of `Field: value` with continuation lines.
fn deb822(text: &str, codename: &str) -> Vec<Archive> {
    let mut archives = Vec::new();
    let mut stanza: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            archives.extend(stanza_archives(&stanza, codename));
            stanza.clear();
        } else if line.starts_with([' ', '\t']) {
            let value = stanza.entry(last.clone()).or_default();
            value.push('\n');
            value.push_str(line);
        } else if let Some((field, value)) = line.split_once(':') {
            last = field.trim().to_ascii_lowercase();
            stanza.insert(last.clone(), value.trim().to_owned());
        }
    }
    archives
}

/// The archives of one deb822 stanza.
fn stanza_archives(stanza: &BTreeMap<String, String>, codename: &str) -> Vec<Archive> {
    let field = |name: &str| stanza.get(name).map(String::as_str).unwrap_or_default();
    let has = |name: &str, word: &str| field(name).split_whitespace().any(|found| found == word);
    let enabled = !matches!(field("enabled").to_ascii_lowercase().as_str(), "no" | "false" | "0");
    if !enabled
        || !has("types", "deb")
        || !has("components", "main")
        || !serves_release(field("suites"), codename)
    {
        return Vec::new();
    }
    let signed_by = stanza.get("signed-by").cloned();
    field("uris")
        .split_whitespace()
        .map(|uri| Archive { uri: uri.to_owned(), signed_by: signed_by.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(uri: &str, signed_by: Option<&str>) -> Archive {
        Archive { uri: uri.to_owned(), signed_by: signed_by.map(str::to_owned) }
    }

    #[test]
    fn one_line_notation() {
        let text = "# comment\n\
            deb-src http://mirror.test/debian bookworm main\n\
            deb http://mirror.test/security bookworm-security main\n\
            deb [arch=amd64 signed-by=/k/a.gpg,/k/b.gpg] http://mirror.test/debian bookworm main contrib # x\n\
            deb http://other.test/vendor nodistro main\n\
            deb\thttp://second.test/debian\tstable\tmain\n\
            deb http://third.test/debian bookworm contrib\n";
        assert_eq!(
            one_line(text, "bookworm"),
            [
                archive("http://mirror.test/debian", Some("/k/a.gpg /k/b.gpg")),
                archive("http://second.test/debian", None)
            ]
        );
    }

    #[test]
    fn deb822_notation() {
        let text = "Types: deb deb-src\n\
            # a comment inside\n\
            URIs: http://mirror.test/debian http://spare.test/debian\n\
            Suites: trixie trixie-updates\n\
            Components: main\n\
            Signed-By: /k/a.gpg\n\
            \n\
            Types: deb\nURIs: http://off.test/debian\nSuites: trixie\nComponents: main\nEnabled: no\n\
            \n\
            Types: deb\nURIs: http://key.test/debian\nSuites: trixie\nComponents: main\n\
            Signed-By:\n -----BEGIN\n .\n abc\n";
        assert_eq!(
            deb822(text, "trixie"),
            [
                archive("http://mirror.test/debian", Some("/k/a.gpg")),
                archive("http://spare.test/debian", Some("/k/a.gpg")),
                archive("http://key.test/debian", Some("\n -----BEGIN\n .\n abc")),
            ]
        );
    }

    #[test]
    fn a_stanza_round_trips() {
        let source = archive("http://mirror.test/debian", Some("/k/a.gpg"));
        let text = source.stanza("sid", None);
        assert_eq!(deb822(&text, "bookworm"), [source]);
    }

    #[test]
    fn no_source_is_an_error_with_a_remedy() {
        let empty = tempfile::tempdir().unwrap();
        let error = archives(empty.path(), "bookworm").unwrap_err().to_string();
        assert!(error.contains("add the machine's Debian mirror"), "{error}");
    }
}
