//! An image as people name it.

use crate::value;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use undercroft_block::stack::Description;
use uuid::Uuid;

/// What stands before the source of what is salvaged.
const SALVAGE: &str = "salvage:";

/// A device; or what can be salvaged from one, as a volume that is only read.
#[derive(Clone, Debug)]
pub(crate) struct ImageName {
    pub(super) device: Description,
    pub(super) salvaged: Option<Salvaged>,
}

/// What is salvaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Salvaged {
    /// The volume, where there are traces of several.
    pub(super) uuid: Option<Uuid>,
}

impl From<Description> for ImageName {
    fn from(device: Description) -> Self {
        Self { device, salvaged: None }
    }
}

impl ImageName {
    /// Whether what follows names a source of what is salvaged.
    pub(crate) fn is_salvaged(text: &OsStr) -> bool {
        text.as_bytes().starts_with(SALVAGE.as_bytes())
    }

    /// From an argument: `salvage:SOURCE`, `salvage:UUID:SOURCE`, or what a device is called.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|text| Self::of(&text))
    }

    /// As [`parser`](Self::parser).
    pub(crate) fn of(text: &OsStr) -> Result<Self, value::ImageError> {
        let Some(rest) = text.as_bytes().strip_prefix(SALVAGE.as_bytes()) else {
            return value::device(text).map(Self::from);
        };
        let (uuid, source) = match rest.split_at_checked(UUID) {
            Some((uuid, [b':', source @ ..])) => {
                match str::from_utf8(uuid).ok().and_then(|text| text.parse().ok()) {
                    Some(uuid) => (Some(uuid), source),
                    None => (None, rest),
                }
            }
            _ => (None, rest),
        };
        let device = value::device(OsStr::from_bytes(source))?;
        Ok(Self { device, salvaged: Some(Salvaged { uuid }) })
    }
}

/// Characters of a UUID.
const UUID: usize = 36;

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.salvaged {
            None => {}
            Some(Salvaged { uuid: None }) => f.write_str(SALVAGE)?,
            Some(Salvaged { uuid: Some(uuid) }) => write!(f, "{SALVAGE}{uuid}:")?,
        }
        self.device.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_mean() {
        const OLD: &str = "11111111-2222-3333-4444-555555555555";
        for (text, source, uuid) in [
            ("disk.img".to_owned(), "disk.img", None),
            ("./salvage:disk.img".to_owned(), "./salvage:disk.img", None),
            ("salvage:disk.img".to_owned(), "disk.img", Some(None)),
            (format!("salvage:{OLD}:disk.img"), "disk.img", Some(Some(OLD))),
            (format!("salvage:{OLD}"), OLD, Some(None)),
            ("salvage:x:disk.img".to_owned(), "x:disk.img", Some(None)),
        ] {
            let name = ImageName::of(OsStr::new(&text)).unwrap();
            assert_eq!(name.device.to_string(), source);
            let found = name.salvaged.map(|what| what.uuid.map(|uuid| uuid.to_string()));
            assert_eq!(found, uuid.map(|uuid: Option<&str>| uuid.map(str::to_owned)));
            assert_eq!(name.to_string(), text);
        }
        assert!(ImageName::of(OsStr::new("salvage:")).is_err());
        assert!(ImageName::of(OsStr::new("salvage:-")).is_err());
    }
}
