//! Images from trees.
