//! Images made of layers.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How a layer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Gzip,
    Zstd,
    /// Frames, then skippable frames with a table of contents and a footer, as podman writes them.
    ZstdChunked,
    /// Members, the last with the table of contents, and a footer.
    Stargz,
}

pub(crate) const FORMS: [Form; 5] =
    [Form::Plain, Form::Gzip, Form::Zstd, Form::ZstdChunked, Form::Stargz];

impl Form {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Plain => "application/vnd.oci.image.layer.v1.tar",
            Self::Gzip | Self::Stargz => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Zstd | Self::ZstdChunked => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }

    /// The uncompressed bytes, which eStargz has more of, and the blob.
    pub(crate) fn encode(self, tar: &[u8]) -> (Vec<u8>, Vec<u8>) {
        match self {
            Self::Plain => (tar.to_vec(), tar.to_vec()),
            Self::Gzip => (tar.to_vec(), gzip(tar)),
            Self::Zstd => (tar.to_vec(), zstd::encode_all(tar, 3).unwrap()),
            Self::ZstdChunked => (tar.to_vec(), zstd_chunked(tar)),
            Self::Stargz => stargz(tar),
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn skippable(content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_le_bytes();
    [&0x184D_2A50_u32.to_le_bytes()[..], &length, content].concat()
}

fn zstd_chunked(tar: &[u8]) -> Vec<u8> {
    let chunks = tar.chunks(4096).flat_map(|chunk| zstd::encode_all(chunk, 3).unwrap());
    let mut blob: Vec<u8> = chunks.collect();
    let offset = blob.len() as u64 + 8;
    let table = zstd::encode_all(&br#"{"version":1,"entries":[]}"#[..], 3).unwrap();
    blob.extend(skippable(&table));
    let length = table.len() as u64;
    let numbers = [offset, length, 26, 1, 0, 0, 0];
    let mut footer: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    footer.extend(b"GNUlInUx");
    blob.extend(skippable(&footer));
    blob
}

fn stargz(tar: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let without_end = tar.len() - 1024;
    let toc = super::layer::Layer::at(0).file("stargz.index.json", br#"{"version":1}"#).end();
    let landmark = super::layer::Layer::at(0).file(".no.prefetch.landmark", &[0xf]).end();
    let landmark = &landmark[..landmark.len() - 1024];
    let mut blob: Vec<u8> = gzip(landmark);
    blob.extend(tar[..without_end].chunks(4096).flat_map(gzip));
    let offset = blob.len();
    blob.extend(gzip(&toc));
    let mut footer = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 26, 0, b'S', b'G', 22, 0];
    footer.extend(format!("{offset:016x}STARGZ").bytes());
    // An empty stored block, and the sum and length of nothing.
    footer.extend([1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(footer.len(), 51);
    blob.extend(footer);
    ([landmark, &tar[..without_end], &toc].concat(), blob)
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    format!("sha256:{}", sum.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// An OCI image layout in a directory.
pub(crate) struct Layout {
    pub(crate) path: PathBuf,
    manifests: Vec<Value>,
}

impl Layout {
    pub(crate) fn new(path: &Path) -> Self {
        fs::create_dir_all(path.join("blobs/sha256")).unwrap();
        fs::write(path.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        Self { path: path.to_owned(), manifests: Vec::new() }
    }

    /// An image of one tag.
    pub(crate) fn of(path: &Path, layers: &[(Form, Vec<u8>)]) -> Self {
        let mut layout = Self::new(path);
        let manifest = layout.image(layers, "amd64", &json!({}));
        layout.add(manifest, Some("t"), None);
        layout
    }

    pub(crate) fn blob_path(&self, digest: &str) -> PathBuf {
        self.path.join("blobs").join(digest.replace(':', "/"))
    }

    /// Adds a blob; its descriptor.
    pub(crate) fn blob(&mut self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = digest(bytes);
        fs::write(self.blob_path(&digest), bytes).unwrap();
        json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
    }

    /// Adds an image without naming it; the descriptor of its manifest.
    pub(crate) fn image(
        &mut self,
        layers: &[(Form, Vec<u8>)],
        architecture: &str,
        execution: &Value,
    ) -> Value {
        let mut diff_ids = Vec::new();
        let mut descriptors = Vec::new();
        for (form, tar) in layers {
            let (uncompressed, blob) = form.encode(tar);
            diff_ids.push(digest(&uncompressed));
            descriptors.push(self.blob(form.media_type(), &blob));
        }
        let config = json!({
            "architecture": architecture, "os": "linux", "config": execution,
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        self.manifest(&config, &descriptors)
    }

    /// Adds a manifest; its descriptor.
    pub(crate) fn manifest(&mut self, config: &Value, layers: &[Value]) -> Value {
        let config =
            self.blob("application/vnd.oci.image.config.v1+json", config.to_string().as_bytes());
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers,
        });
        self.blob(media_type, manifest.to_string().as_bytes())
    }

    /// Names a manifest or index in `index.json`.
    pub(crate) fn add(
        &mut self,
        mut descriptor: Value,
        tag: Option<&str>,
        platform: Option<Value>,
    ) {
        if let Some(tag) = tag {
            descriptor["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
        }
        if let Some(platform) = platform {
            descriptor["platform"] = platform;
        }
        self.manifests.push(descriptor);
        let index = json!({ "schemaVersion": 2, "manifests": self.manifests });
        fs::write(self.path.join("index.json"), index.to_string()).unwrap();
    }
}
