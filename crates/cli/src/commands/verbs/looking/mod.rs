//! Verbs that look at files and at space, and how they print names and sizes.

pub(super) mod df;
pub(super) mod du;
pub(super) mod find;
pub(super) mod ls;
mod names;
mod sizes;
pub(super) mod stat;
pub(super) mod tree;
pub(super) mod whose;

pub(crate) use names::NameArgs;
