//! Devices and checks for tests: of devices, and of layers built on devices.

pub mod conformance;
mod faulty;
mod random;
pub mod recorder;

pub use faulty::{Fault, FaultyDevice};
pub(crate) use random::{mix, tear};
