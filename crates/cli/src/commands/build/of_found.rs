//! Volumes of files that were found: removed ones, or those of a damaged volume.

use super::{Args, print_summary, show};
use crate::failure::Usage;
use crate::image::salvaged::takes;
use crate::image::{ImageArgs, ImageName, Part};
use crate::report::Outcome;
use anyhow::{Result, anyhow, bail};
use std::io::Write;
use std::time::Instant;
use undercroft_block::stack::Description;
use undercroft_image::FoundSource;
use undercroft_image::pack::{self, PackOptions};
use undercroft_source::{Opened, SourceOptions, SourceSpec, with_rules};

/// Makes a volume of files that were found.
pub(in crate::commands) fn build_found(
    source: FoundSource,
    image: &Description,
    force: bool,
    json: bool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let start = Instant::now();
    // The source is open: where it is from does not count.
    let options = PackOptions::new(SourceSpec::StandardInput, image.clone());
    let options = PackOptions { force, durable: true, ..options };
    let opened = Opened { source: Box::new(source), image: None };
    let summary = show(|progress| pack::build_from(opened, &options, progress))?;
    print_summary(&summary, start.elapsed().as_secs_f64(), (image, json), out)?;
    Ok(Outcome::Done)
}

/// What can be read of a damaged volume, if that is the source.
pub(super) fn open(args: &Args, options: &SourceOptions) -> Result<Option<Opened>> {
    let text = args.source.as_os_str();
    if !ImageName::is_salvaged(text) {
        return Ok(None);
    }
    let is_plain = !options.image.required && options.description == Default::default();
    if args.verify || !is_plain {
        bail!(Usage(format!(
            "{} is what can be read of a damaged volume: --verify and the options of container images and \
             descriptions do not go with it",
            text.display()
        )));
    }
    let image =
        ImageArgs::part_of(ImageName::of(text).map_err(|error| anyhow!(error))?, Part::default());
    let found = image.salvaged()?;
    let mut options = options.clone();
    if options.reading.strict {
        options.reading.exclude = options.reading.exclude.noting();
    }
    let exclude = &options.reading.exclude;
    let source = FoundSource::without(&found.disk, &found.salvaged.files, takes, exclude);
    Ok(Some(with_rules(Opened { source: Box::new(source), image: None }, &options)))
}
