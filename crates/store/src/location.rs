//! What a URI names: a store, an object or a prefix in it, and the manifest that is meant.

use crate::digest::Digest;
use crate::error::StoreError;
use object_store::path::Path;
use std::fmt;

/// Longest name of an image.
const NAME: usize = 128;

/// A place in a store: an object, or a prefix below which images are published in chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub(crate) scheme: Scheme,
    /// The bucket, container or host; nothing for a directory.
    pub(crate) bucket: String,
    /// The object or the prefix.
    pub(crate) path: Path,
    /// What follows `?` in a URL of HTTP: signatures, for instance.
    pub(crate) query: Option<String>,
    /// The image below the prefix, if it is one.
    pub(crate) reference: Option<Reference>,
}

/// Kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    S3,
    Google,
    Azure,
    Http,
    Https,
    Directory,
}

/// Which image of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The one that has this name now.
    Name(String),
    /// The one whose manifest has this digest, forever.
    Pinned(Digest),
}

const SCHEMES: [(&str, Scheme); 6] = [
    ("s3://", Scheme::S3),
    ("gs://", Scheme::Google),
    ("az://", Scheme::Azure),
    ("http://", Scheme::Http),
    ("https://", Scheme::Https),
    ("file://", Scheme::Directory),
];

impl Scheme {
    pub(crate) const fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    fn prefix(self) -> &'static str {
        let found = SCHEMES.iter().find(|(_, scheme)| *scheme == self);
        found.map_or("", |(prefix, _)| prefix)
    }
}

impl Location {
    /// The place that a URI names: `s3://BUCKET/KEY`, `gs://BUCKET/KEY`, `az://CONTAINER/KEY`,
    /// `https://HOST/PATH[?QUERY]`, `file:///DIRECTORY`; with `@NAME` or `@sha256:DIGEST` behind it an image
    /// below that prefix. An `@` that belongs to a key is written `%40`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::Location { text: text.to_owned(), why };
        let found = SCHEMES.iter().find(|(prefix, _)| {
            text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        });
        let Some((prefix, scheme)) = found else {
            let known: Vec<_> = SCHEMES.iter().map(|(prefix, _)| *prefix).collect();
            return Err(wrong(format!("a store begins with one of {}", known.join(", "))));
        };
        let rest = &text[prefix.len()..];
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) if scheme.is_http() => (rest, Some(query.to_owned())),
            _ => (rest, None),
        };
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(wrong(
                "names and passwords do not belong in it; the store takes its credentials from \
                 variables"
                    .into(),
            ));
        }
        match (scheme, bucket) {
            (Scheme::Directory, "") => {}
            (Scheme::Directory, _) => {
                return Err(wrong("write file:///DIRECTORY, with three slashes".into()));
            }
            (_, "") => {
                return Err(wrong(format!("it names no bucket or host: {prefix}BUCKET/KEY")));
            }
            _ => {}
        }
        let (path, reference) = match path.rsplit_once('@') {
            Some((path, name)) => (path, Some(reference(name).map_err(wrong)?)),
            None => (path, None),
        };
        let path = path.trim_end_matches('/');
        let parsed = match scheme {
            Scheme::Http | Scheme::Https => Path::from_url_path(path),
            Scheme::Directory => Ok(Path::from(path.replace("%40", "@"))),
            _ => Path::parse(path.replace("%40", "@")),
        };
        let path = parsed.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { scheme: *scheme, bucket: bucket.to_owned(), path, query, reference })
    }

    /// The image that is named, if one is.
    #[must_use]
    pub const fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// The store and the prefix, without the image.
    pub(crate) fn base(&self) -> String {
        self.with_path(&self.path)
    }

    /// An object of the same store.
    pub(crate) fn with_path(&self, path: &Path) -> String {
        format!("{}{}/{path}", self.scheme.prefix(), self.bucket)
    }
}

/// What follows the `@`.
fn reference(text: &str) -> Result<Reference, String> {
    if let Some(digits) = text.strip_prefix("sha256:") {
        let digest = Digest::from_hex(digits);
        return digest.map(Reference::Pinned).ok_or_else(|| {
            "a digest is sha256: and 64 hexadecimal digits in lower case".to_owned()
        });
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    let is_name = text.bytes().all(is_allowed) && text.len() <= NAME && !text.starts_with('.');
    if text.is_empty() || !is_name {
        return Err(format!(
            "{text:?} is no name of an image: letters, digits, and . _ - + within it, at most {NAME}; \
             an @ that belongs to a key is written %40"
        ));
    }
    Ok(Reference::Name(text.to_owned()))
}

impl fmt::Display for Location {
    /// Without the query, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base())?;
        match &self.reference {
            Some(reference) => write!(f, "@{reference}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Pinned(digest) => write!(f, "sha256:{digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_name_objects_and_images() {
        let name = |name: &str| Some(Reference::Name(name.into()));
        for (text, bucket, path, reference) in [
            ("s3://b/a/disk.img", "b", "a/disk.img", None),
            ("S3://b/a@v1", "b", "a", name("v1")),
            ("s3://b@", "b@", "", None),
            ("gs://b/a%40b/c@x.y-z", "b", "a@b/c", name("x.y-z")),
            ("az://c/a/", "c", "a", None),
            ("https://host:81/a%20b/d.img?sig=x@y", "host:81", "a b/d.img", None),
            ("file:///tmp/store@v1", "", "tmp/store", name("v1")),
        ] {
            let parsed = Location::parse(text);
            if bucket.contains('@') {
                assert!(parsed.unwrap_err().to_string().contains("credentials"));
                continue;
            }
            let parsed = parsed.unwrap();
            assert_eq!((parsed.bucket.as_str(), parsed.path.as_ref()), (bucket, path), "{text}");
            assert_eq!(parsed.reference, reference, "{text}");
        }
        let digest = Digest::of(b"");
        let pinned = Location::parse(&format!("s3://b/p@sha256:{digest}")).unwrap();
        assert_eq!(pinned.reference, Some(Reference::Pinned(digest)));
        let signed = Location::parse("https://h/d.img?secret").unwrap();
        assert_eq!(signed.to_string(), "https://h/d.img");
        assert_eq!(signed.query.as_deref(), Some("secret"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("ftp://a/b", "begins with one of"),
            ("s3:///key", "no bucket"),
            ("file://a/b", "three slashes"),
            ("s3://b/p@", "no name"),
            ("s3://b/p@a b", "no name"),
            ("s3://b/p@sha256:12", "64 hexadecimal"),
            ("s3://b/a//b", "empty"),
            ("https://user:password@host/x", "credentials"),
        ] {
            let error = Location::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
