//! Container images: documents, layers and their stacking.
//!
//! The first byte of the input chooses. A document of a sound image is patched, and the digests that
//! name it are made right again; or the rest of the input is a list of steps that make layers of
//! short names, so that marks, links and replaced kinds meet often.

use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use undercroft_source::oci::{ImageFormat, ImageSpec};
use undercroft_source::{Kind, Options, SourceSpec, open};

/// Names that steps choose from.
const NAMES: [&str; 16] = [
    "a",
    "b",
    "a/b",
    "a/b/c",
    "b/a",
    ".wh.a",
    ".wh.b",
    "a/.wh.b",
    "a/.wh..wh..opq",
    ".wh..wh..opq",
    "a/b/.wh.c",
    ".wh.",
    "a/.wh...",
    "./",
    "b/c/d",
    "b/.wh.c",
];
/// Most layers of an image.
const LAYERS: usize = 4;

pub(crate) fn run(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    let Ok(home) = tempfile::tempdir() else { return };
    let image = if choice % 2 == 0 {
        Image { layers: layers(rest), patched: None }
    } else {
        let document = usize::from(choice / 2) % 3;
        Image { layers: layers(&[0, 0, 4, 1]), patched: Some((document, rest)) }
    };
    if image.write(home.path()).is_err() {
        return;
    }
    read(home.path(), rest.len());
}

/// Reads an image twice, and checks what every source promises.
fn read(path: &Path, steps: usize) {
    let image = ImageSpec { format: ImageFormat::Oci, path: path.into(), reference: None };
    let options = Options { temporary_directory: path.into(), ..Options::default() };
    let mut source = match open(&SourceSpec::Image(image), &options.into()) {
        Ok(opened) => opened.source,
        Err(error) => return drop(error.to_string()),
    };
    let mut scanned = Vec::new();
    if let Err(error) = source.scan(&mut |entry| scanned.push(entry.clone())) {
        return drop(error.to_string());
    }
    assert!(scanned.len() <= 8 * (steps + 8), "more entries than the layers have");
    let (mut kinds, mut seen) = (BTreeMap::new(), BTreeSet::new());
    for entry in &scanned {
        let path = entry.path.as_bytes().to_vec();
        if let Some(parent) = entry.path.parent().filter(|parent| !parent.is_root()) {
            let parent = kinds.get(parent.as_bytes());
            assert_eq!(parent, Some(&true), "a directory comes before what is in it");
        }
        if let Kind::HardLink(first) = &entry.kind {
            let first = kinds.get(first.as_bytes());
            assert_eq!(first, Some(&false), "a file comes before its links");
        }
        let is_mark = entry.path.components().any(|name| name.starts_with(b".wh."));
        assert!(!is_mark, "marks are no entries");
        assert!(seen.insert(path.clone()), "a path comes once");
        kinds.insert(path, entry.kind == Kind::Directory);
    }
    for expected in &scanned {
        let entry = match source.next_entry() {
            Ok(entry) => entry,
            Err(error) => return drop(error.to_string()),
        };
        assert_eq!(entry.as_ref(), Some(expected), "both passes have the same entries");
        let mut bytes = 0;
        while let Ok(Some(data)) = source.next_data() {
            bytes += data.chunk.len() as u64;
        }
        if let Kind::Regular { size, .. } = expected.kind {
            assert_eq!(bytes, size, "all data comes");
        }
    }
    assert!(!matches!(source.next_entry(), Ok(Some(_))), "the second pass has no more");
}

/// Layers of steps: each is a kind, a name and a target.
fn layers(input: &[u8]) -> Vec<Vec<u8>> {
    let mut layers = vec![Vec::new()];
    for step in input.chunks_exact(3) {
        let name = |byte: u8| NAMES[usize::from(byte) % NAMES.len()];
        let last = layers.len() - 1;
        match step[0] % 8 {
            0 if layers.len() < LAYERS => layers.push(Vec::new()),
            0 | 1 => member(&mut layers[last], name(step[1]), b'5', "", b""),
            2 => member(&mut layers[last], name(step[1]), b'1', name(step[2]), b""),
            3 => member(&mut layers[last], name(step[1]), b'2', name(step[2]), b""),
            4 => member(&mut layers[last], name(step[1]), b'3', "", b""),
            _ => member(
                &mut layers[last],
                name(step[1]),
                b'0',
                "",
                &step[..usize::from(step[2] % 4)],
            ),
        }
    }
    for layer in &mut layers {
        layer.extend([0; 1024]);
    }
    layers
}

fn member(tar: &mut Vec<u8>, name: &str, kind: u8, target: &str, data: &[u8]) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
    header[136..148].copy_from_slice(b"00000000001\0");
    header[148..156].fill(b' ');
    header[156] = kind;
    header[157..157 + target.len()].copy_from_slice(target.as_bytes());
    header[257..265].copy_from_slice(b"ustar\x0000");
    // Every other device is a whiteout.
    let minor = if name.len().is_multiple_of(2) { b"0000000\0" } else { b"0000001\0" };
    header[329..337].copy_from_slice(b"0000000\0");
    header[337..345].copy_from_slice(minor);
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend(header);
    tar.extend(data);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

struct Image<'a> {
    layers: Vec<Vec<u8>>,
    /// Which document is patched: index, manifest or config; and how.
    patched: Option<(usize, &'a [u8])>,
}

impl Image<'_> {
    fn write(&self, home: &Path) -> std::io::Result<()> {
        fs::create_dir_all(home.join("blobs/sha256"))?;
        fs::write(home.join("oci-layout"), "{}")?;
        let blob = |media_type: &str, bytes: &[u8]| {
            let digest = digest(bytes);
            fs::write(home.join("blobs/sha256").join(&digest), bytes)?;
            let size = bytes.len();
            let text = format!(
                r#"{{"mediaType":"application/vnd.oci.image.{media_type}","digest":"sha256:{digest}","size":{size}}}"#
            );
            Ok::<_, std::io::Error>(text)
        };
        let mut layers = Vec::new();
        let mut diff_ids = Vec::new();
        for layer in &self.layers {
            layers.push(blob("layer.v1.tar", layer)?);
            diff_ids.push(format!(r#""sha256:{}""#, digest(layer)));
        }
        let config = format!(
            r#"{{"os":"linux","architecture":"amd64","config":{{"Labels":{{"a":"b"}}}},"rootfs":{{"diff_ids":[{}]}}}}"#,
            diff_ids.join(",")
        );
        let config = blob("config.v1+json", &self.document(2, config))?;
        let manifest = format!(r#"{{"config":{config},"layers":[{}]}}"#, layers.join(","));
        let manifest = blob("manifest.v1+json", &self.document(1, manifest))?;
        let index = format!(r#"{{"manifests":[{manifest}]}}"#);
        fs::write(home.join("index.json"), self.document(0, index))
    }

    /// A document, perhaps with bytes put over or into it.
    fn document(&self, number: usize, text: String) -> Vec<u8> {
        let mut bytes = text.into_bytes();
        if let Some((_, patches)) = self.patched.filter(|(document, _)| *document == number) {
            for patch in patches.chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % bytes.len();
                if patch[0].is_multiple_of(3) {
                    bytes.insert(at, patch[2]);
                } else {
                    bytes[at] = patch[2];
                }
            }
        }
        bytes
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
