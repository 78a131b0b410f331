//! Images built, and judged.

pub mod combination;
pub mod judged;
