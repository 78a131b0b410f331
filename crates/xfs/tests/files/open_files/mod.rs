//! Files in use as a server uses them: numbers used again, files removed while dirty or open,
//! errors under locks, callbacks that call back, full volumes.

mod ahead;
mod ahead_of_writers;
mod awaited;
mod callbacks;
mod errors;
mod lifecycle;
mod locks;
mod reads;
mod space;
mod stand;
mod tickets;
