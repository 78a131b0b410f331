//! Devices and checks for tests: of devices, and of what is built on devices.

pub mod conformance;
mod faulty;
pub mod recorder;

pub(crate) use faulty::mix;
pub use faulty::{Fault, FaultyDevice};
