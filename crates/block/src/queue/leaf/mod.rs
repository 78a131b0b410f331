//! A leaf: its queue from the entrance to the answers, and the threads that drive it.

mod claimed;
mod completer;
mod device;
mod dispatch;
mod entrance;
mod finish;
mod placed_answers;
mod request_queue;
mod shared;
mod splice;
mod stop;
mod timed_out;
mod watchdog;
mod watchdog_state;
mod worker;

pub use device::Leaf;
