//! Files made durable by tickets.

pub mod cuts;
pub mod work;
