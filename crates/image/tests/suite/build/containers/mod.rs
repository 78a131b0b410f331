//! Container images: what layers make together, compared with overlayfs in the kernel and with umoci.

mod bad;
mod choice;
mod image;
mod layer;
mod on;
mod rules;
mod same;
mod stacks;
mod unpacked;
