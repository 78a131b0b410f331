//! Object stores of others, and a way to them that is slow, and lies.

mod answer;
mod asked;
mod moto;
mod way;

pub use asked::Asked;
pub use moto::Moto;
pub use way::{Fault, Way};
