//! Directories of every form that XFS stores them in, and deep ones.

use super::Maker;
use crate::Error;

pub(super) fn make(maker: &mut Maker) -> Result<(), Error> {
    maker.directory("directories/empty")?;
    // Inline, one block, leaf, node, at a directory block of 4 KiB; the last is still a node
    // directory at 16 KiB.
    for count in [1, 4, 40, 300, 3_000] {
        let directory = maker.directory(&format!("directories/of-{count}"))?;
        for number in 0..count {
            Maker::file(&directory.join(format!("entry-{number:06}-with-a-longer-name")))?;
        }
    }
    // Removed entries leave free space in the middle.
    let directory = maker.directory("directories/with-gaps")?;
    for number in 0..600 {
        Maker::file(&directory.join(format!("{number:05}")))?;
    }
    for number in (0..600).filter(|number| number % 3 != 0) {
        let path = directory.join(format!("{number:05}"));
        std::fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
    }
    let deep = vec!["deep"; 100].join("/");
    let deep = maker.directory(&format!("directories/{deep}"))?;
    Maker::file(&deep.join("bottom"))
}
