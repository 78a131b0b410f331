//! Which of the images in a place is meant, and its parts.

use super::digest::Digest;
use super::documents::{self, Config, Descriptor, Index, Manifest, Media};
use super::error::{ImageProblem, Role};
use super::platform::Platform;
use super::spec::{ImageFormat, ImageOptions};
use super::store::{self, Store};
use crate::region::Region;

/// Most indexes in one another.
const MAX_DEPTH: usize = 8;
/// Most manifests of an image.
const MAX_MANIFESTS: usize = 4096;

type Result<T> = std::result::Result<T, ImageProblem>;

/// An image that was chosen.
pub(super) struct Chosen {
    /// The config as it is.
    pub(super) config_bytes: Vec<u8>,
    pub(super) config: Config,
    /// From the bottom up.
    pub(super) layers: Vec<Blob>,
}

/// The blob of a layer.
pub(super) struct Blob {
    /// Its digest, or its name in a docker archive.
    pub(super) name: String,
    pub(super) region: Region,
    /// What the bytes must hash to, where the image says so.
    pub(super) digest: Option<Digest>,
    /// What the uncompressed bytes must hash to.
    pub(super) diff_id: Digest,
}

/// Chooses from an image layout.
pub(super) fn from_layout(
    store: &Store,
    format: ImageFormat,
    reference: Option<&str>,
    options: &ImageOptions,
) -> Result<Chosen> {
    let remedy = match format {
        ImageFormat::OciArchive => "name what `docker save` wrote docker-archive:FILE",
        _ => "name an archive oci-archive:FILE or docker-archive:FILE",
    };
    let missing = |missing| ImageProblem::NoImage { kind: "OCI image layout", missing, remedy };
    let find = |name: &'static str| {
        let read = |source| ImageProblem::Read { role: Role::Index, name: name.into(), source };
        store.find(name).map_err(read)?.ok_or_else(|| missing(name))
    };
    find("oci-layout")?;
    let index = store::contents(Role::Index, "index.json", &find("index.json")?)?;
    let index: Index = documents::read(Role::Index, &index)?;
    let named = named(index.manifests.unwrap_or_default(), reference)?;
    let mut manifests = Vec::new();
    for descriptor in named {
        expand(store, descriptor, 0, &mut manifests)?;
    }
    let manifest = suiting(store, manifests, options.platform.as_ref())?;
    from_manifest(store, &manifest)
}

/// The descriptors of a name; without one, all, if they have the same.
fn named(descriptors: Vec<Descriptor>, reference: Option<&str>) -> Result<Vec<Descriptor>> {
    let images = || descriptors.iter().filter(|descriptor| !descriptor.is_attestation());
    let name = |descriptor: &Descriptor| {
        let tag = descriptor.names().next().map(str::to_owned);
        tag.unwrap_or_else(|| format!("@{}", descriptor.digest))
    };
    let has = || {
        let mut names: Vec<_> = images().map(name).collect();
        names.sort();
        names.dedup();
        names
    };
    let Some(reference) = reference else {
        let mut digests: Vec<_> = images().map(|descriptor| &descriptor.digest).collect();
        digests.sort();
        digests.dedup();
        let first = images().next().map(|descriptor| descriptor.names().next());
        // One image for several platforms has one name, or none.
        let same = images().all(|descriptor| Some(descriptor.names().next()) == first);
        if digests.is_empty() {
            return Err(ImageProblem::Empty(Role::Index));
        }
        if digests.len() > 1 && !same {
            return Err(ImageProblem::Tags { wanted: None, has: has() });
        }
        return Ok(descriptors);
    };
    let is_meant = |descriptor: &Descriptor| {
        descriptor.digest.as_str() == reference
            || descriptor.names().any(|name| is_same_name(name, reference))
    };
    let found: Vec<_> = images().filter(|descriptor| is_meant(descriptor)).cloned().collect();
    if found.is_empty() {
        return Err(ImageProblem::Tags { wanted: Some(reference.to_owned()), has: has() });
    }
    Ok(found)
}

/// Whether two names mean one image: the tag `latest` and the registry of docker go without saying.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    fn plain(name: &str) -> &str {
        let name = name.strip_prefix("docker.io/").unwrap_or(name);
        let name = name.strip_prefix("library/").unwrap_or(name);
        name.strip_suffix(":latest").unwrap_or(name)
    }
    one == other || plain(one) == plain(other)
}

/// Adds the manifests that a descriptor means, each once.
fn expand(
    store: &Store,
    descriptor: Descriptor,
    depth: usize,
    manifests: &mut Vec<Descriptor>,
) -> Result<()> {
    if descriptor.is_attestation() {
        return Ok(());
    }
    match descriptor.media() {
        Media::Manifest if manifests.iter().any(|known| known.digest == descriptor.digest) => {}
        Media::Manifest => manifests.push(descriptor),
        Media::Index if depth < MAX_DEPTH => {
            let bytes = store.document(Role::Index, &descriptor)?;
            let index: Index = documents::read(Role::Index, &bytes)?;
            for descriptor in index.manifests.unwrap_or_default() {
                expand(store, descriptor, depth + 1, manifests)?;
            }
        }
        Media::Index => return Err(ImageProblem::Nesting(MAX_DEPTH)),
        // The specification wants unknown types passed over.
        _ => {}
    }
    if manifests.len() > MAX_MANIFESTS {
        return Err(ImageProblem::Nesting(MAX_DEPTH));
    }
    Ok(())
}

/// The manifest for a platform. A single one is taken without being asked for its own.
fn suiting(
    store: &Store,
    mut manifests: Vec<Descriptor>,
    wanted: Option<&Platform>,
) -> Result<Descriptor> {
    if wanted.is_none()
        && manifests.len() == 1
        && let Some(only) = manifests.pop()
    {
        return Ok(only);
    }
    let platforms = manifests.iter().map(|manifest| match &manifest.platform {
        Some(platform) => Ok(platform.clone()),
        None => Ok(read_config(store, manifest)?.platform()),
    });
    let platforms = platforms.collect::<Result<Vec<_>>>()?;
    let host = Platform::host();
    let wanted = wanted.unwrap_or(&host);
    let mut best = None;
    for (platform, manifest) in platforms.iter().zip(&manifests) {
        // Of equals the first counts.
        if let Some(suits) = platform.suits(wanted)
            && best.as_ref().is_none_or(|(best, _)| suits > *best)
        {
            best = Some((suits, manifest));
        }
    }
    match best {
        Some((_, manifest)) => Ok(manifest.clone()),
        None if platforms.is_empty() => Err(ImageProblem::Empty(Role::Index)),
        None => Err(no_platform(wanted, &platforms)),
    }
}

pub(super) fn no_platform(wanted: &Platform, has: &[Platform]) -> ImageProblem {
    let mut has: Vec<_> = has.iter().map(Platform::to_string).collect();
    has.sort();
    has.dedup();
    ImageProblem::Platforms { wanted: wanted.to_string(), has }
}

fn read_manifest(store: &Store, descriptor: &Descriptor) -> Result<Manifest> {
    documents::read(Role::Manifest, &store.document(Role::Manifest, descriptor)?)
}

fn read_config(store: &Store, manifest: &Descriptor) -> Result<Config> {
    let manifest = read_manifest(store, manifest)?;
    expect_config(&manifest.config)?;
    documents::read(Role::Config, &store.document(Role::Config, &manifest.config)?)
}

fn expect_config(descriptor: &Descriptor) -> Result<()> {
    let (role, media_type) = (Role::Config, descriptor.media_type.clone());
    match descriptor.media() {
        Media::Config => Ok(()),
        _ => Err(ImageProblem::MediaType { role, media_type }),
    }
}

fn from_manifest(store: &Store, descriptor: &Descriptor) -> Result<Chosen> {
    let manifest = read_manifest(store, descriptor)?;
    expect_config(&manifest.config)?;
    let config_bytes = store.document(Role::Config, &manifest.config)?;
    let config: Config = documents::read(Role::Config, &config_bytes)?;
    let descriptors = manifest.layers.unwrap_or_default();
    expect_count(descriptors.len(), &config)?;
    let mut layers = Vec::with_capacity(descriptors.len());
    for (index, (descriptor, diff_id)) in descriptors.iter().zip(config.diff_ids()).enumerate() {
        let role = Role::Layer(index + 1);
        let media_type = || descriptor.media_type.clone();
        match descriptor.media() {
            Media::Layer => {}
            Media::EncryptedLayer => {
                return Err(ImageProblem::Encrypted { role, media_type: media_type() });
            }
            _ => return Err(ImageProblem::MediaType { role, media_type: media_type() }),
        }
        layers.push(Blob {
            name: descriptor.digest.to_string(),
            region: store.blob(role, descriptor)?,
            digest: Some(descriptor.digest.clone()),
            diff_id: diff_id.clone(),
        });
    }
    Ok(Chosen { config_bytes, config, layers })
}

pub(super) fn expect_count(layers: usize, config: &Config) -> Result<()> {
    let diff_ids = config.diff_ids().len();
    if layers == diff_ids { Ok(()) } else { Err(ImageProblem::LayerCount { layers, diff_ids }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_docker_shortens_them() {
        assert!(is_same_name("docker.io/library/debian:latest", "debian"));
        assert!(is_same_name("debian:12", "docker.io/library/debian:12"));
        assert!(!is_same_name("debian:12", "debian"));
        assert!(!is_same_name("quay.io/debian", "debian"));
    }
}
