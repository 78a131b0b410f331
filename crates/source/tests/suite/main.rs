//! What sources deliver, checked from outside: whole trees, archives by the system's tar and by hand.

mod archive;
mod collect;
mod directory;
mod faults;
mod formats;
mod random;
