//! Devices made of devices: [`Linear`], [`Stripe`], [`Mirror`], and their [`Description`] in words.

mod description;
mod stripe;

pub use description::{Allotment, Description, DescriptionError, FileLeaf, MAX_DEPTH, NoRoom};
pub use stripe::Stripe;
