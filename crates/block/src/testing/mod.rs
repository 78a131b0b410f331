//! Devices and checks for tests of devices and of what is built on them.
