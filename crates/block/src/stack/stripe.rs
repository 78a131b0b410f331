//! stripe
pub struct Stripe;
impl Stripe {
    /// Whether a stripe may have chunks of `bytes` bytes: a power of two from 4 KiB to 1 GiB.
    #[must_use]
    pub const fn is_chunk(bytes: u64) -> bool {
        bytes.is_power_of_two() && bytes >= 4 << 10 && bytes <= 1 << 30
    }
}
