//! Trees from images.
