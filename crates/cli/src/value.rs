//! Values of options as people write them.

use std::error::Error;

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use undercroft_block::stack::{Description, LeafDescription, NetworkKind, NetworkLeaf};
use undercroft_source::{ModeChange, Timestamp};
use undercroft_xfs::format;
use undercroft_xfs::maintain;
use undercroft_xfs::mkfs::{Feature, Preset};

/// Names of presets, as `--preset` takes them.
pub(crate) const PRESETS: [&str; 10] = [
    "default", "auto", "lts-4.19", "lts-5.4", "lts-5.10", "lts-5.15", "lts-6.1", "lts-6.6",
    "lts-6.12", "lts-6.18",
];

/// Why a text names no device.
pub(crate) type ImageError = Box<dyn Error + Send + Sync>;

/// An image: a path, a URI, or a description of a stacked device.
pub(crate) fn image() -> impl TypedValueParser<Value = Description> {
    OsStringValueParser::new().try_map(|text| device(&text))
}

/// The device that an argument names.
pub(crate) fn device(text: &OsStr) -> Result<Description, ImageError> {
    if text == "-" {
        let what = "a volume cannot be streamed; name a file (./- is one of this name)";
        return Err(what.into());
    }
    if text.is_empty() {
        return Err("name a file, a disk or a network disk".into());
    }
    let image = Description::from_argument(text)?;
    for leaf in image.leaves() {
        if let LeafDescription::Network(leaf) = leaf {
            check_network(leaf)?;
        }
    }
    Ok(image)
}

/// Checks a URI without looking for what it names.
fn check_network(leaf: &NetworkLeaf) -> Result<(), ImageError> {
    let lacks = |what: &str, feature: &str| {
        let uri = &leaf.uri;
        let text = format!(
            "{uri}: this program was built without {what}; build it with the feature `{feature}`"
        );
        Err(text.into())
    };
    match leaf.kind() {
        #[cfg(feature = "network")]
        NetworkKind::Export => Ok(undercroft_nbd::client::check(leaf)?),
        #[cfg(feature = "objects")]
        NetworkKind::Object => Ok(undercroft_store::check(&leaf.uri)?),
        #[allow(unreachable_patterns, reason = "with all features no kind is left")]
        NetworkKind::Export => lacks("network disks", "network"),
        #[allow(unreachable_patterns, reason = "with all features no kind is left")]
        NetworkKind::Object => lacks("object stores", "objects"),
    }
}

/// A label of a volume.
pub(crate) fn label() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|text| maintain::check_label(text.as_bytes()).map(|()| text))
}

/// A logical volume of LVM, with its group.
pub(crate) fn logical_volume(text: &str) -> Result<String, String> {
    match text.strip_prefix("/dev/").unwrap_or(text).split_once('/') {
        Some((group, name)) if !group.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(format!("{group}/{name}"))
        }
        _ => Err("write GROUP/VOLUME, such as vg/root".to_owned()),
    }
}

/// Bytes of an image: from one on, so many or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) bytes: Option<u64>,
}

/// A stretch of an image: `START[,size=BYTES]`.
pub(crate) fn stretch(text: &str) -> Result<Stretch, String> {
    let (start, length) = match text.split_once(',') {
        None => (text, None),
        Some((start, rest)) => match rest.strip_prefix("size=") {
            Some(length) => (start, Some(length)),
            None => return Err("write BYTES or BYTES,size=BYTES, such as 1M,size=10G".to_owned()),
        },
    };
    Ok(Stretch { start: size(start)?, bytes: length.map(size).transpose()? })
}

/// Bytes: a number, which may have a fraction, with an optional suffix. K, M, G, T, P and E with or
/// without "iB" are powers of 1024, as in GNU tools; with "B", powers of 1000. A part below a byte
/// is dropped.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let of_number = |symbol: char| symbol.is_ascii_digit() || symbol == '.';
    let digits = text.find(|symbol| !of_number(symbol)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let suffix = suffix.to_ascii_lowercase();
    let (letter, base) = match suffix.as_str() {
        "b" => ("", 1024),
        suffix => match (suffix.strip_suffix("ib"), suffix.strip_suffix('b')) {
            (Some(letter), _) => (letter, 1024),
            (None, Some(letter)) => (letter, 1000),
            (None, None) => (suffix, 1024),
        },
    };
    let power = match letter {
        "" if suffix.len() < 2 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        "e" => 6,
        _ => {
            return Err(format!("{suffix:?} is no unit; write a number and K, M, G, T, P or E"));
        }
    };
    let unit = u128::pow(base, power);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let wrong = || "write a number, such as 512M, 1.5G or 10MB".to_owned();
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    if fraction.is_empty() || fraction.len() > 18 || (power == 0 && number.contains('.')) {
        return Err(wrong());
    }
    let parts: u128 = fraction.parse().map_err(|_| wrong())?;
    // At most 2^64 x 2^60 and 10^18 x 2^60.
    let bytes = u128::from(whole) * unit + parts * unit / u128::pow(10, fraction.len() as u32);
    u64::try_from(bytes).map_err(|_| "that is 2^64 bytes or more".to_owned())
}

/// As [`size`], for sizes that fit 32 bits.
pub(crate) fn small_size(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| "that is more than 4 GiB".to_owned())
}

/// An owner: UID:GID, both numbers.
pub(crate) fn owner(text: &str) -> Result<(u32, u32), String> {
    let parsed =
        text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    parsed.ok_or_else(|| "write two numbers, such as 1000:1000 or 0:0".to_owned())
}

/// Bytes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

/// Bytes in hexadecimal digits, two each.
pub(crate) fn hex(text: &str) -> Result<Bytes, String> {
    let digits = text.bytes().map(|digit| char::from(digit).to_digit(16));
    let digits: Option<Vec<u32>> = digits.collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => {
            // Two digits are a byte.
            Ok(Bytes(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()))
        }
        _ => Err("write two hexadecimal digits for each byte".into()),
    }
}

/// Permission bits in octal.
pub(crate) fn mode(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(ModeChange::Set(bits)) => Ok(bits),
        _ => Err("write up to four octal digits, such as 755 or 1777".to_owned()),
    }
}

/// A time: `@SECONDS` since 1970 with an optional fraction, or RFC 3339.
pub(crate) fn time(text: &str) -> Result<format::Timestamp, String> {
    let Timestamp { seconds, nanoseconds } = text.parse()?;
    Ok(format::Timestamp { seconds, nanoseconds })
}

/// A preset by its name.
pub(crate) fn preset(name: &str) -> Result<Preset, String> {
    let name = name.strip_prefix("lts-").unwrap_or(name);
    name.parse().map_err(|error: undercroft_xfs::mkfs::MkfsError| error.to_string())
}

/// A feature setting, `NAME=0` or `NAME=1`.
pub(crate) fn feature(setting: &str) -> Result<(Feature, bool), String> {
    Feature::parse_setting(setting).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("3G", 3 << 30),
            ("3GiB", 3 << 30),
            ("64k", 65_536),
            ("1TiB", 1 << 40),
            ("0b", 0),
            ("10MB", 10_000_000),
            ("10kb", 10_000),
            ("1.5G", 3 << 29),
            ("1.5GB", 1_500_000_000),
            ("0.001K", 1),
            ("8E", 8 << 60),
            ("15.999999999999999999E", u64::MAX - 1),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "G",
            ".",
            "3X",
            "-1",
            "1.5",
            "1.G",
            ".5G",
            "1..5G",
            "1.5.5G",
            "1iB",
            "3iKB",
            "16E",
            "16777216T",
            "18446744073709551616",
            "1e3",
            "1.0000000000000000001G",
            "+1K",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(small_size("4G").is_err());
    }

    #[test]
    fn times_have_two_forms() {
        let at = |seconds, nanoseconds| Ok(format::Timestamp { seconds, nanoseconds });
        assert_eq!(time("@0"), at(0, 0));
        assert_eq!(time("@1700000000.5"), at(1_700_000_000, 500_000_000));
        assert_eq!(time("@-1.25"), at(-2, 750_000_000));
        assert_eq!(time("@-0.25"), at(-1, 750_000_000));
        assert_eq!(time("1970-01-01T00:00:01.000000002Z"), at(1, 2));
        assert_eq!(time("1969-12-31T23:59:59.5Z"), at(-1, 500_000_000));
        for text in ["", "@", "@x", "@1.", "@1.1234567890", "yesterday"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn owners_modes_presets() {
        assert_eq!(owner("0:4294967295"), Ok((0, u32::MAX)));
        assert!(owner("root:root").is_err() && owner("1").is_err());
        assert_eq!(hex("00fF"), Ok(Bytes(vec![0, 255])));
        assert!(hex("0").is_err() && hex("0g").is_err() && hex("\u{fc}").is_err());
        assert_eq!(mode("1777"), Ok(0o1777));
        assert!(mode("17777").is_err() && mode("8").is_err());
        for name in PRESETS.into_iter().filter(|name| *name != "auto") {
            assert!(preset(name).is_ok(), "{name}");
        }
    }
}
