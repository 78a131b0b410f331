//! Random numbers for workloads that are to be the same again.

/// The numbers of one purpose of a run: no other purpose changes them.
pub(crate) fn stream(seed: u64, purpose: u64) -> fastrand::Rng {
    // Seeds of neighbouring purposes must differ in more than a bit.
    fastrand::Rng::with_seed(seed.wrapping_add(purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}
