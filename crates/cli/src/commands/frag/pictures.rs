//! The layout of a volume as a picture and as a page.

use crate::output_file;
use anyhow::Result;
use std::path::{Path, PathBuf};
use undercroft_lab::{layout_map, layout_page};
use undercroft_xfs::frag::Layout;

/// Files that are written besides.
#[derive(clap::Args)]
#[group(id = "file", multiple = true, args = ["map", "html"])]
pub(super) struct PictureArgs {
    /// Write a picture of the volume to this file, as SVG.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,

    /// Write a page with the picture and histograms to this file: HTML without scripts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Replace the files of --map and --html if they are there.
    #[arg(long, requires = "file")]
    force: bool,
}

impl PictureArgs {
    /// Fails if a file is there that must not be replaced.
    pub(super) fn check(&self) -> Result<()> {
        let mut paths = self.map.iter().chain(&self.html);
        paths.try_for_each(|path| output_file::check(path, self.force))
    }

    /// Writes the files that were asked for, of the volume in `image`.
    pub(super) fn write(&self, image: &str, selection: &str, layout: &Layout) -> Result<()> {
        let name = Path::new(image).file_name().unwrap_or_default().to_string_lossy();
        if let Some(path) = &self.map {
            output_file::write(path, layout_map(&name, layout).as_bytes(), self.force)?;
        }
        if let Some(path) = &self.html {
            let page = layout_page(&name, selection, layout);
            output_file::write(path, page.as_bytes(), self.force)?;
        }
        Ok(())
    }
}
