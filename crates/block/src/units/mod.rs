//! Units: addresses on a device, and the sizes that it asks for.

mod limits;
mod sector;

pub use limits::Limits;
pub(crate) use sector::overlap;
pub use sector::{SECTOR_SIZE, Sector};
