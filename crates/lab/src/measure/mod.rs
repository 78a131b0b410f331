//! What experiments share: threads that begin together, times and counts, places to work at.

pub(crate) mod cpus;
pub(crate) mod crew;
pub(crate) mod destination;
pub(crate) mod histogram;
pub(crate) mod latency;
pub(crate) mod live_image;
pub(crate) mod random;
pub(crate) mod rate;
pub(crate) mod scratch;
pub(crate) mod soundness;
pub(crate) mod usage;
