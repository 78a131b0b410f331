//! Names of any bytes, and of every length.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::Maker;
use crate::Error;

pub(super) fn make(maker: &mut Maker) -> Result<(), Error> {
    let bytes = maker.directory("names/bytes")?;
    for byte in 1..=255_u8 {
        if byte == b'/' {
            continue;
        }
        // Each byte alone is a name too, except for the dot.
        let name = if byte == b'.' { b"...".to_vec() } else { vec![byte] };
        Maker::file(&bytes.join(OsStr::from_bytes(&name)))?;
    }
    let odd = maker.directory("names/odd")?;
    let names: [&[u8]; 12] = [
        b"new\nline",
        b"tab\tand space ",
        b" leading space",
        b"-rf",
        b"--",
        b"back\\slash",
        b"quote\"and'quote",
        b"not utf-8 \xff\xfe\xc3\x28",
        b"overlong \xc0\xaf",
        b"*?[a]{b}",
        "e\u{301}".as_bytes(),
        "\u{e9}".as_bytes(),
    ];
    for name in names {
        Maker::file(&odd.join(OsStr::from_bytes(name)))?;
    }
    let lengths = maker.directory("names/lengths")?;
    for length in 1..=255 {
        Maker::file(&lengths.join("n".repeat(length)))?;
    }
    let longest = maker.directory("names/longest")?.join(OsStr::from_bytes(&[0xfe; 255]));
    std::fs::create_dir(&longest).map_err(Error::io("cannot create", &longest))?;
    Maker::file(&longest.join("inside"))
}
