//! `memcpy`, `memmove`, `memcmp` and `bcmp` for programs that are linked with musl on x86_64: see the
//! README for the reason. Name the crate in the program (`use undercroft_mem as _;`), and the linker takes
//! these. Elsewhere it is empty but for the functions themselves, so that tests can call them.
//!
//! Registers of 16 bytes are used, which every x86_64 has.
#![no_std]
// The compiler would make calls of these functions of the loops in them.
#![no_builtins]
#![allow(unsafe_code, reason = "the functions of C take pointers")]

#[cfg(target_arch = "x86_64")]
mod compare;
#[cfg(target_arch = "x86_64")]
mod copy;

// Without optimisation the moves in them are calls of memcpy.
#[cfg(all(target_arch = "x86_64", target_env = "musl", not(debug_assertions)))]
mod symbols;

#[cfg(target_arch = "x86_64")]
pub use compare::compare;
#[cfg(target_arch = "x86_64")]
pub use copy::copy;
