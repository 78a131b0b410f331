//! The locks from outside: guards, order, waiting, locks set down and taken again.

mod condvar;
mod guards;
mod order;
mod ranks;
mod relock;
