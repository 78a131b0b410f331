//! Histories of a device, found by property tests.

use proptest::prelude::*;
use undercroft_block::testing::conformance::Step;

/// A step that begins in the first 120 sectors and has fewer than `longest`.
pub(crate) fn step(longest: u64) -> impl Strategy<Value = Step> {
    let place = || (0..120_u64, 1..longest);
    prop_oneof![
        4 => (place(), any::<u8>())
            .prop_map(|((sector, sectors), byte)| Step::Write { sector, sectors, byte }),
        2 => place().prop_map(|(sector, sectors)| Step::Read { sector, sectors }),
        1 => place().prop_map(|(sector, sectors)| Step::WriteZeroes { sector, sectors }),
        1 => Just(Step::Flush),
        1 => Just(Step::Unplug),
    ]
}
