//! The chapters of the report, and their order.

use crate::record::Record;
use crate::report::chapter::Chapter;
use crate::{affinity, alloc, fsync, iops, meta, mount, tags, unplug};

/// All chapters on `records`, in the order of the report.
pub(crate) fn all(records: &[Record]) -> Vec<Chapter<'_>> {
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
