//! Reports of records: tables, plots, and a page with a chapter for each experiment.

pub(crate) mod blocks;
pub(crate) mod chapter;
pub(crate) mod chapters;
pub(crate) mod comparison;
pub(crate) mod figures;
pub(crate) mod markdown;
pub(crate) mod noise;
pub(crate) mod number;
pub(crate) mod page;
pub(crate) mod plot;
pub(crate) mod tables;
