//! Suites of others for mounted volumes, and the end that each has: a volume that all judges accept.

pub mod direct;
pub mod ends;
pub mod fsx;
pub mod kill;
pub mod pjdfstest;
