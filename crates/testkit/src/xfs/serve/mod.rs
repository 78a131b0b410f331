//! Threads that use one volume as a server does.

pub mod device;
pub mod history;
pub mod slot;
pub mod worker;
