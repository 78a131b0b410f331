//! Several messages with the SHA extensions of x86_64 (Intel, "New Instructions Supporting the Secure Hash
//! Algorithm on Intel Architecture Processors", 2013).
#![allow(unsafe_code, reason = "instructions that not every processor has, and loads from memory")]

use super::BLOCK;
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_extract_epi32, _mm_loadu_si128, _mm_set_epi32,
    _mm_set_epi64x, _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32,
    _mm_shuffle_epi8, _mm_shuffle_epi32,
};

/// The constants of the rounds, FIPS 180-4, "SHA-224 and SHA-256 Constants".
const ROUNDS: [[u32; 4]; 16] = [
    [0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5],
    [0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5],
    [0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3],
    [0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174],
    [0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc],
    [0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da],
    [0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7],
    [0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967],
    [0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13],
    [0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85],
    [0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3],
    [0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070],
    [0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5],
    [0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3],
    [0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208],
    [0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2],
];

/// Compresses blocks of `N` messages, as many as each of them has, into their states; false, with
/// nothing done, if this processor cannot.
pub(super) fn compress<const N: usize>(
    states: &mut [[u32; 8]; N],
    blocks: [&[[u8; BLOCK]]; N],
) -> bool {
    let can = is_x86_feature_detected!("sha")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("sse4.1");
    if can {
        // SAFETY: the processor has what the function is compiled for.
        unsafe { compress_here(states, blocks) };
    }
    can
}

/// The eight words in the order of the instructions: a, b, e, f and c, d, g, h, from the highest.
#[derive(Clone, Copy)]
struct Working {
    abef: __m128i,
    cdgh: __m128i,
}

impl Working {
    #[target_feature(enable = "sse2")]
    #[inline]
    fn of(words: &[u32; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = words.map(u32::cast_signed);
        Self { abef: _mm_set_epi32(a, b, e, f), cdgh: _mm_set_epi32(c, d, g, h) }
    }

    #[target_feature(enable = "sse4.1")]
    #[inline]
    fn words(self) -> [u32; 8] {
        let Self { abef, cdgh } = self;
        [
            _mm_extract_epi32::<3>(abef),
            _mm_extract_epi32::<2>(abef),
            _mm_extract_epi32::<3>(cdgh),
            _mm_extract_epi32::<2>(cdgh),
            _mm_extract_epi32::<1>(abef),
            _mm_extract_epi32::<0>(abef),
            _mm_extract_epi32::<1>(cdgh),
            _mm_extract_epi32::<0>(cdgh),
        ]
        .map(i32::cast_unsigned)
    }

    /// Four rounds with their words of the schedule, the constants added.
    #[target_feature(enable = "sha,sse2")]
    #[inline]
    fn four_rounds(&mut self, words: __m128i) {
        self.cdgh = _mm_sha256rnds2_epu32(self.cdgh, self.abef, words);
        let upper = _mm_shuffle_epi32::<0x0e>(words);
        self.abef = _mm_sha256rnds2_epu32(self.abef, self.cdgh, upper);
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    fn add(&mut self, before: Self) {
        self.abef = _mm_add_epi32(self.abef, before.abef);
        self.cdgh = _mm_add_epi32(self.cdgh, before.cdgh);
    }
}

/// Sixteen bytes as four words, which a message has with the highest byte first.
#[target_feature(enable = "ssse3")]
#[inline]
fn message_words(block: &[u8; BLOCK]) -> [__m128i; 4] {
    let order = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let (quarters, _) = block.as_chunks::<16>();
    std::array::from_fn(|index| {
        // SAFETY: a quarter is as long as what is loaded, which may lie anywhere.
        let bytes = unsafe { _mm_loadu_si128(quarters[index].as_ptr().cast()) };
        _mm_shuffle_epi8(bytes, order)
    })
}

/// The four words of the schedule behind the sixteen `a`, `b`, `c` and `d`.
#[target_feature(enable = "sha,ssse3")]
#[inline]
fn next_words(a: __m128i, b: __m128i, c: __m128i, d: __m128i) -> __m128i {
    let sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8::<4>(d, c));
    _mm_sha256msg2_epu32(sum, d)
}

#[expect(clippy::needless_range_loop, reason = "an index is one of several messages")]
#[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
fn compress_here<const N: usize>(states: &mut [[u32; 8]; N], blocks: [&[[u8; BLOCK]]; N]) {
    let mut working: [Working; N] = std::array::from_fn(|lane| Working::of(&states[lane]));
    let count = blocks.iter().map(|blocks| blocks.len()).min().unwrap_or(0);
    for index in 0..count {
        let before = working;
        let mut words: [_; N] = std::array::from_fn(|lane| message_words(&blocks[lane][index]));
        // Each four words of the schedule make room for those of sixteen rounds later. With numbers
        // known here, words stay in registers.
        macro_rules! rounds {
            ($($at:literal)*) => {$(
                // SAFETY: four constants are as long as what is loaded.
                let constants = unsafe { _mm_loadu_si128(ROUNDS[$at].as_ptr().cast()) };
                for lane in 0..N {
                    working[lane].four_rounds(_mm_add_epi32(words[lane][$at % 4], constants));
                }
                for words in words.iter_mut().filter(|_| $at < 12) {
                    let [b, c, d] = [words[($at + 1) % 4], words[($at + 2) % 4], words[($at + 3) % 4]];
                    words[$at % 4] = next_words(words[$at % 4], b, c, d);
                }
            )*};
        }
        rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for lane in 0..N {
            working[lane].add(before[lane]);
        }
    }
    for lane in 0..N {
        states[lane] = working[lane].words();
    }
}
