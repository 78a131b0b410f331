//! The chapters of the report, and their order.

use crate::record::Record;
use crate::report::chapter::Chapter;
use crate::report::noise::Noise;
use crate::{affinity, alloc, fsync, iops, meta, mount, tags, unplug};

/// All chapters on `records`, in the order of the report. What was measured on a busy machine is
/// doubtful, and what is no number is left out.
pub(crate) fn all(records: &[Record]) -> Vec<Chapter<'_>> {
    let is_doubtful = Noise::of(records).is_some_and(|noise| noise.is_doubtful());
    let mut chapters = plain(records);
    for finding in chapters.iter_mut().flat_map(|chapter| &mut chapter.findings) {
        finding.measured.retain(|(_, estimate)| estimate.is_finite());
        finding.measured.iter_mut().for_each(|(_, estimate)| estimate.is_doubtful = is_doubtful);
    }
    chapters
}

fn plain(records: &[Record]) -> Vec<Chapter<'_>> {
    vec![
        tags::chapters::depth(records),
        tags::chapters::shared(records),
        tags::chapters::herd(records),
        tags::chapters::variability(records),
        tags::chapters::fairness(records),
        unplug::chapter::chapter(records),
        affinity::chapter::large(records),
        affinity::chapter::cached(records),
        mount::chapter::chapter(records),
        alloc::chapter::clean(records),
        alloc::chapter::random(records),
        alloc::chapter::single(records),
        fsync::chapter::chapter(records),
        meta::chapter::chapter(records),
        iops::chapter::chapter(records),
    ]
}
