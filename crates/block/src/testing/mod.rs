//! Devices and checks for tests: of devices, and of what is built on devices.

pub mod conformance;
pub(crate) mod faulty;
pub mod recorder;

pub use faulty::{Fault, FaultyDevice};
