//! Tests of the engine against simple models, on trees in memory with small blocks.

mod corruption;
mod model;
mod place;
mod samples;
mod space;
mod store;
mod structure;
