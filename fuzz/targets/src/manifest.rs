//! Manifests of images in stores, and the URIs by which they are named.
//!
//! What is decoded is encoded again and decoded: both must mean the same.

use undercroft_store::{CHUNK_BYTES, Digest, Location, Manifest};

pub(crate) fn run(input: &[u8]) {
    if let Ok(manifest) = Manifest::decode(input) {
        assert_eq!(
            Manifest::decode(&manifest.encode()),
            Ok(manifest.clone()),
            "not read as written"
        );
        for (number, digest) in manifest.chunks() {
            assert!(number * CHUNK_BYTES < manifest.bytes(), "a chunk behind the end");
            assert_eq!(manifest.chunk(*number), Some(*digest), "a chunk that is not found");
        }
    }
    // A sound one, of which the input says length and chunks.
    let numbers =
        input.chunks_exact(2).map(|pair| u64::from(u16::from_le_bytes([pair[0], pair[1]])));
    let chunks = numbers.map(|number| (number, Digest::of(&number.to_le_bytes()))).collect();
    let bytes = CHUNK_BYTES * (1 + input.len() as u64);
    if let Ok(manifest) = Manifest::new(bytes, chunks) {
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest), "not read as written");
    }
    let text = String::from_utf8_lossy(input);
    if let Ok(location) = Location::parse(&text) {
        let shown = location.to_string();
        let is_shown = location.reference().is_none() || shown.contains('@');
        assert!(is_shown, "an image without its name");
    }
}
