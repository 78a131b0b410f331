//! Random volumes made smaller, and their judge.

pub mod random;
pub mod shrink_judge;
