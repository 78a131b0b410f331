//! Building an image and asking all judges about it.

use std::path::Path;

use undercroft_image::pack::{self, PackError, PackOptions, Summary};
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Comparison, Holes, Options, compare};
use undercroft_judges::{Error, LoopMount, Report, Xfsprogs};
use undercroft_source::SourceSpec;
use undercroft_xfs::format::Incompat;
use undercroft_xfs::mkfs::{self, MkfsOptions};

/// Options that build `source` into `image`.
pub fn options(source: &Path, image: &Path) -> PackOptions {
    PackOptions::new(SourceSpec::Path(source.to_owned()), image.to_owned())
}

/// The image, a single file.
pub fn image_of(options: &PackOptions) -> &Path {
    options.image.as_path().unwrap()
}

/// Builds without a progress report.
pub fn build(options: &PackOptions) -> Result<Summary, PackError> {
    pack::build(options, &mut |_| ())
}

/// Asks every version of `xfs_repair -n` that knows the format of the volume in `image`, which has
/// `size` bytes and was made with `volume`.
pub fn repair(image: &Path, size: u64, volume: &MkfsOptions) -> Result<(), Error> {
    Xfsprogs::newest()?.repair_check(image)?;
    let planned = mkfs::plan(&MkfsOptions { size, ..volume.clone() });
    let unknown = Incompat::EXCHRANGE | Incompat::PARENT;
    let known = planned.is_ok_and(|planned| !planned.features.incompat.intersects(unknown));
    match known.then(|| Xfsprogs::distribution()?.repair_check(image)) {
        Some(Err(Error::Complaint(report))) if is_about_place_of_root(&report) => Ok(()),
        asked => asked.unwrap_or(Ok(())),
    }
}

/// Whether a version finds nothing but that the root directory is not where it would have put it.
/// The versions disagree on this with each other about volumes of large blocks: 6.1 refuses those
/// of 7.x, and the other way round.
fn is_about_place_of_root(report: &Report) -> bool {
    let mut complaints = report.complaints.iter();
    complaints.all(|line| {
        line.contains("valid but in unaligned location")
            || line.contains("Could not estimate a plausible sb_unit value")
    })
}

/// Compares the tree `source` with what the kernel sees in `image`. Holes are as fine as the
/// larger of the two block sizes.
pub fn compare_mounted(source: &Path, image: &Path, block_size: u32) -> Result<Comparison, Error> {
    let holes = Holes::Map { unit: u64::from(block_size.max(4096)) };
    let mount = LoopMount::new(image, Access::ReadOnly, &[])?;
    let found =
        compare(source, mount.path(), &Options { holes, limit: 10_000, ..Options::default() })?;
    mount.unmount()?;
    Ok(found)
}

/// Builds, and fails the test unless the volume is clean and holds `tree`.
#[track_caller]
pub fn assert_built(options: &PackOptions, tree: &Path) -> Summary {
    let summary = match build(options) {
        Ok(summary) => summary,
        Err(error) => panic!("{}", chain(&error)),
    };
    repair(image_of(options), summary.image_bytes, &options.volume).unwrap();
    compare_mounted(tree, image_of(options), options.volume.block_size).unwrap().assert_same();
    summary
}

/// An error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
