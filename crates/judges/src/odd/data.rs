//! Contents and holes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Maker;
use crate::Error;

/// A unit of data larger than any block, so that holes stay holes on every file system.
const UNIT: u64 = 64 * 1024;

pub(super) fn make(maker: &mut Maker) -> Result<(), Error> {
    let sizes = maker.directory("contents")?;
    for size in [0, 1, 511, 512, 513, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 1_000_003] {
        write(&sizes.join(format!("{size}-bytes")), size, &[(0, size)])?;
    }
    let sparse = maker.directory("sparse")?;
    let unit = UNIT;
    for (name, size, data) in [
        ("all-hole", 16 * unit, vec![]),
        ("all-hole-large", 1 << 40, vec![]),
        ("leading-hole", 4 * unit, vec![(3 * unit, 4 * unit)]),
        ("middle-hole", 4 * unit, vec![(0, unit), (3 * unit, 4 * unit)]),
        ("trailing-hole", 4 * unit, vec![(0, unit)]),
        ("short-tail", 4 * unit + 5, vec![(0, unit), (4 * unit, 4 * unit + 5)]),
        ("far", 1 << 41, vec![(0, unit), ((1 << 41) - unit, 1 << 41)]),
        (
            "comb",
            400 * unit,
            (0..200).map(|tooth| (2 * tooth * unit, (2 * tooth + 1) * unit)).collect(),
        ),
    ] {
        write(&sparse.join(name), size, &data)?;
    }
    // Zeros that were written are data, not a hole.
    let zeros = sparse.join("written-zeros");
    std::fs::write(&zeros, vec![0; 4 * 65_536]).map_err(Error::io("cannot write", &zeros))
}

/// Makes a file of `size` bytes with bytes that depend on their place in the ranges `data`, and
/// holes elsewhere.
fn write(path: &Path, size: u64, data: &[(u64, u64)]) -> Result<(), Error> {
    let file = File::create(path).map_err(Error::io("cannot create", path))?;
    file.set_len(size).map_err(Error::io("cannot resize", path))?;
    for &(start, end) in data {
        let bytes: Vec<u8> =
            (start..end).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8 | 1).collect();
        file.write_all_at(&bytes, start).map_err(Error::io("cannot write", path))?;
    }
    Ok(())
}
