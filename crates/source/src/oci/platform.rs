//! The machines that an image is for.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// Operating system and processor, by the names that images have for them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Platform {
    /// `linux` and the like.
    pub os: String,
    /// `amd64`, `arm64` and the like.
    pub architecture: String,
    /// The version of the architecture, such as `v7`.
    #[serde(default)]
    pub variant: Option<String>,
}

impl Platform {
    /// Linux on the processor of this program.
    pub fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "loongarch64" => "loong64",
            "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
            "powerpc64" => "ppc64",
            other => other,
        };
        Self { os: "linux".into(), architecture: architecture.into(), variant: None }
    }

    /// The variant, without those that go without saying.
    fn variant(&self) -> Option<&str> {
        let variant = self.variant.as_deref().filter(|variant| !variant.is_empty());
        variant.filter(|variant| {
            !matches!((&self.architecture[..], *variant), ("amd64", "v1") | ("arm64", "v8"))
        })
    }

    /// How well an image for this platform suits a machine that was asked for: more is better.
    pub(super) fn suits<'a>(&'a self, wanted: &Self) -> Option<Suits<'a>> {
        if self.os != wanted.os || self.architecture != wanted.architecture {
            return None;
        }
        match (wanted.variant(), self.variant()) {
            (None, variant) => Some(Suits { is_plain: variant.is_none(), variant }),
            (Some(wanted), Some(own)) if wanted == own => {
                Some(Suits { is_plain: true, variant: Some(own) })
            }
            _ => None,
        }
    }

    /// Whether it is a placeholder of something that is no image, as of attestations.
    pub(super) fn is_unknown(&self) -> bool {
        self.os == "unknown"
    }
}

/// A match of platforms, in ascending order: without a wanted variant the one without variant is
/// best, and else the newest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Suits<'a> {
    is_plain: bool,
    variant: Option<&'a str>,
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) if !variant.is_empty() => write!(formatter, "/{variant}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match parts[..] {
            [os, architecture] => (os, architecture, None),
            [os, architecture, variant] => (os, architecture, Some(variant)),
            _ => ("", "", None),
        };
        if os.is_empty() || architecture.is_empty() || variant.is_some_and(str::is_empty) {
            return Err(format!("\"{text}\" is no platform; write linux/amd64 or linux/arm/v7"));
        }
        let variant = variant.map(str::to_owned);
        Ok(Self { os: os.to_owned(), architecture: architecture.to_owned(), variant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(wanted: &str, has: &[&'static str]) -> Option<String> {
        let wanted: Platform = wanted.parse().unwrap();
        let has: Vec<Platform> = has.iter().map(|text| text.parse().unwrap()).collect();
        let suiting = has.iter().filter_map(|own| Some((own.suits(&wanted)?, own)));
        suiting.max_by(|one, other| one.0.cmp(&other.0)).map(|(_, own)| own.to_string())
    }

    #[test]
    fn the_plain_or_the_newest_variant_is_taken() {
        let arm = ["linux/arm/v6", "linux/arm/v7", "linux/arm/v5"];
        assert_eq!(best("linux/arm", &arm).as_deref(), Some("linux/arm/v7"));
        assert_eq!(best("linux/arm/v6", &arm).as_deref(), Some("linux/arm/v6"));
        assert_eq!(best("linux/arm/v8", &arm), None);
        let both = ["linux/amd64/v3", "linux/amd64"];
        assert_eq!(best("linux/amd64", &both).as_deref(), Some("linux/amd64"));
        assert_eq!(best("linux/arm64", &["linux/arm64/v8"]).as_deref(), Some("linux/arm64/v8"));
        assert_eq!(best("linux/arm64/v8", &["linux/arm64"]), Some("linux/arm64".to_owned()));
    }

    #[test]
    fn platforms_have_two_or_three_parts() {
        for text in ["", "linux", "linux/", "/amd64", "linux/arm/", "a/b/c/d"] {
            assert!(text.parse::<Platform>().is_err(), "{text}");
        }
    }
}
