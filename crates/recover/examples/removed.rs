//! Lists the removed files of an image with the SHA-256 of what is left of their data.
//!
//! `cargo run --example removed -- disk.img`

use std::sync::Arc;

use sha2::{Digest, Sha256};
use undercroft_block::FileDevice;
use undercroft_recover::{Contents, Disk, FoundFile, RecoverError, Removed};

fn digest(disk: &Disk, file: &FoundFile) -> Result<String, RecoverError> {
    let mut digest = Sha256::new();
    let zeroes = vec![0; 1 << 16];
    let fill = |digest: &mut Sha256, mut len: u64| {
        while len > 0 {
            let part = len.min(zeroes.len() as u64);
            digest.update(&zeroes[..part as usize]);
            len -= part;
        }
    };
    let (mut contents, mut at) = (Contents::new(disk, file), 0);
    while let Some(piece) = contents.next_piece()? {
        fill(&mut digest, piece.offset - at);
        digest.update(piece.bytes());
        at = piece.offset + piece.bytes().len() as u64;
    }
    fill(&mut digest, file.size.saturating_sub(at).min(1 << 32));
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let image = std::env::args_os().nth(1).ok_or("which image?")?;
    let disk = Disk::new(Arc::new(FileDevice::open(image.as_ref(), true)?))?;
    let removed = Removed::find(&disk, &mut |_, _, _| {})?;
    for file in removed.files.iter() {
        let path = |path: &undercroft_recover::Path| {
            let names: Vec<_> =
                path.names.iter().map(|name| name.escape_ascii().to_string()).collect();
            format!("{}{}", if path.is_complete { "/" } else { "?/" }, names.join("/"))
        };
        let paths: Vec<_> = file.paths.iter().map(path).collect();
        let (state, from, kind) = (file.state.name(), file.size_from, file.kind);
        let digest = digest(&disk, file)?;
        println!("{state}\t{}\t{from:?}\t{kind:?}\t{digest}\t{}", file.size, paths.join("\t"));
    }
    Ok(())
}
