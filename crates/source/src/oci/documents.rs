//! The JSON documents of an image, as far as they matter: index, manifest, config, and the list of
//! a docker archive.

use super::digest::Digest;
use super::error::{ImageProblem, Role};
use super::platform::Platform;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Largest document that is read; registries take manifests of 4 MiB.
pub(super) const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;

/// Kinds of documents and blobs that a media type can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    Index,
    Manifest,
    Config,
    Layer,
    EncryptedLayer,
    Unknown,
}

impl Media {
    pub(super) fn of(media_type: &str) -> Self {
        match media_type {
            "application/vnd.oci.image.index.v1+json"
            | "application/vnd.docker.distribution.manifest.list.v2+json" => Self::Index,
            "application/vnd.oci.image.manifest.v1+json"
            | "application/vnd.docker.distribution.manifest.v2+json" => Self::Manifest,
            "application/vnd.oci.image.config.v1+json"
            | "application/vnd.docker.container.image.v1+json" => Self::Config,
            layer => Self::of_layer(layer),
        }
    }

    /// The compression that a layer's type says is not looked at: its first bytes tell.
    fn of_layer(media_type: &str) -> Self {
        const LAYERS: [&str; 4] = [
            "application/vnd.oci.image.layer.v1.tar",
            "application/vnd.oci.image.layer.nondistributable.v1.tar",
            "application/vnd.docker.image.rootfs.diff.tar",
            "application/vnd.docker.image.rootfs.foreign.diff.tar",
        ];
        match LAYERS.iter().find_map(|prefix| media_type.strip_prefix(prefix)) {
            Some("" | "+gzip" | ".gzip" | "+zstd" | ".zstd") => Self::Layer,
            Some(rest) if rest.ends_with("+encrypted") => Self::EncryptedLayer,
            _ => Self::Unknown,
        }
    }
}

/// A reference to a blob.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    #[serde(default)]
    pub(super) platform: Option<Platform>,
    #[serde(default)]
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    pub(super) fn media(&self) -> Media {
        Media::of(&self.media_type)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// The tag in an index, or the name that docker and containerd write beside it.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = ["org.opencontainers.image.ref.name", "io.containerd.image.name"];
        names.into_iter().filter_map(|name| self.annotation(name))
    }

    /// Whether it says something about another image instead of being one.
    pub(super) fn is_attestation(&self) -> bool {
        self.annotation("vnd.docker.reference.type").is_some()
            || self.platform.as_ref().is_some_and(Platform::is_unknown)
    }
}

/// An image index, also that of a layout (`index.json`).
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Index {
    #[serde(default)]
    pub(super) manifests: Option<Vec<Descriptor>>,
}

/// An image manifest.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    #[serde(default)]
    pub(super) layers: Option<Vec<Descriptor>>,
}

/// The config of an image.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    #[serde(default)]
    os: Option<String>,
    #[serde(default)]
    architecture: Option<String>,
    #[serde(default)]
    variant: Option<String>,
    #[serde(default)]
    config: Option<Execution>,
    #[serde(default)]
    rootfs: Option<RootFs>,
}

#[derive(Debug, Clone, Deserialize)]
struct Execution {
    #[serde(default, rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Deserialize)]
struct RootFs {
    #[serde(default)]
    diff_ids: Option<Vec<Digest>>,
}

impl Config {
    pub(super) fn platform(&self) -> Platform {
        let host = Platform::host();
        Platform {
            os: self.os.clone().unwrap_or(host.os),
            architecture: self.architecture.clone().unwrap_or(host.architecture),
            variant: self.variant.clone(),
        }
    }

    /// Digests of the uncompressed layers, from the bottom up.
    pub(super) fn diff_ids(&self) -> &[Digest] {
        self.rootfs.as_ref().and_then(|rootfs| rootfs.diff_ids.as_deref()).unwrap_or_default()
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.config.iter().filter_map(|config| config.labels.as_ref());
        labels.flatten().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// An image in the list of a docker archive (`manifest.json`).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SavedImage {
    pub(super) config: String,
    #[serde(default)]
    pub(super) repo_tags: Option<Vec<String>>,
    #[serde(default)]
    pub(super) layers: Option<Vec<String>>,
}

/// Reads a document.
pub(super) fn read<T: DeserializeOwned>(role: Role, bytes: &[u8]) -> Result<T, ImageProblem> {
    serde_json::from_slice(bytes).map_err(|source| ImageProblem::Document { role, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_of_both_families_are_known() {
        for (text, media) in [
            ("application/vnd.oci.image.layer.v1.tar", Media::Layer),
            ("application/vnd.oci.image.layer.v1.tar+zstd", Media::Layer),
            ("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", Media::Layer),
            ("application/vnd.docker.image.rootfs.diff.tar.gzip", Media::Layer),
            ("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", Media::Layer),
            ("application/vnd.oci.image.layer.v1.tar+gzip+encrypted", Media::EncryptedLayer),
            ("application/vnd.oci.image.layer.v1.tarball", Media::Unknown),
            ("application/vnd.oci.image.layer.v1.tar+lz4", Media::Unknown),
            ("", Media::Unknown),
        ] {
            assert_eq!(Media::of(text), media, "{text}");
        }
    }

    #[test]
    fn what_is_left_out_or_null_is_empty() {
        let saved: Vec<SavedImage> =
            read(Role::SavedList, br#"[{"Config":"c","RepoTags":null,"Layers":null}]"#).unwrap();
        assert!(saved[0].layers.is_none());
        let config: Config = read(Role::Config, b"{\"config\":{}}").unwrap();
        assert!(config.diff_ids().is_empty());
        assert_eq!(config.labels().count(), 0);
        assert!(read::<Index>(Role::Index, b"{\"manifests\":[{}]}").is_err());
    }
}
