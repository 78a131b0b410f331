//! Headers of LUKS. There is no key: what one costs is said in the header.

use super::Disk;
use sha2::{Digest, Sha256};

/// Bytes of a header of version 2.
const HEADER: usize = 16 << 10;
const DOCUMENT: &str = r#"{"keyslots":{"0":{"type":"luks2","key_size":64,"af":{"type":"luks1","stripes":4000,"hash":"sha256"},"area":{"type":"raw","offset":"32768","size":"258048","encryption":"aes-xts-plain64","key_size":64},"kdf":{"type":"argon2id","time":4,"memory":1024,"cpus":1,"salt":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}},"tokens":{},"segments":{"0":{"type":"crypt","offset":"294912","size":"dynamic","iv_tweak":"0","encryption":"aes-xts-plain64","sector_size":512}},"digests":{"0":{"type":"pbkdf2","keyslots":["0"],"segments":["0"],"hash":"sha256","iterations":1000,"salt":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}},"config":{"json_size":"12288","keyslots_size":"262144"}}"#;

pub(super) fn version1() -> Disk {
    let mut bytes = vec![0; 64 << 10];
    let mut put = |at: usize, new: &[u8]| bytes[at..at + new.len()].copy_from_slice(new);
    put(0, b"LUKS\xba\xbe\0\x01aes");
    put(40, b"xts-plain64");
    put(72, b"sha256");
    put(104, &[0, 0, 0, 64, 0, 0, 0, 64]);
    put(164, &[0, 0, 4, 0]);
    put(208, &[0, 0xac, 0x71, 0xf3, 0, 0, 4, 0]);
    put(248, &[0, 0, 0, 8, 0, 0, 0, 16]);
    Disk { bytes, pieces: vec![0..208, 208..592], repair: |_| () }
}

pub(super) fn version2() -> Disk {
    let mut bytes = vec![0; 320 << 10];
    for (start, magic) in [(0, b"LUKS\xba\xbe\0\x02"), (HEADER, b"SKUL\xba\xbe\0\x02")] {
        let mut put = |at: usize, new: &[u8]| {
            bytes[start + at..start + at + new.len()].copy_from_slice(new);
        };
        put(0, magic);
        put(8, &(HEADER as u64).to_be_bytes());
        put(16, &7_u64.to_be_bytes());
        put(72, b"sha256");
        put(256, &(start as u64).to_be_bytes());
        put(4096, DOCUMENT.as_bytes());
    }
    repair(&mut bytes);
    let document = 4096..4096 + DOCUMENT.len();
    let other = HEADER + document.start..HEADER + document.end;
    Disk { bytes, pieces: vec![document, 0..512, other, HEADER..HEADER + 512], repair }
}

fn repair(bytes: &mut [u8]) {
    for start in [0, HEADER] {
        let header = &mut bytes[start..start + HEADER];
        header[448..512].fill(0);
        let digest = Sha256::digest(&*header);
        header[448..480].copy_from_slice(&digest);
    }
}
