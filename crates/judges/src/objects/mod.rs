//! Object stores of others, and a way to them that is slow, and lies.

mod answer;
mod moto;
mod way;

pub use moto::Moto;
pub use way::{Asked, Fault, Way};
