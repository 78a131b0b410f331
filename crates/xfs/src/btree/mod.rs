//! The B+tree engine.
