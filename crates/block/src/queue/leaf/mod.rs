//! A leaf: its queue from the entrance to the answers, and the threads that drive it.

mod attendant;
mod attendant_state;
mod claimed;
mod completer;
mod device;
mod dispatch;
mod entrance;
mod finish;
mod late;
mod request_queue;
mod shared;
mod splice;
mod stop;
mod worker;

pub use device::{Frozen, Leaf};
