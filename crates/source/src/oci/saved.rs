//! Images as `docker save` writes them: a list, and configs and layers by the names in it.

use super::choose::{Blob, Chosen, expect_count, is_same_name, no_platform};
use super::digest::Digest;
use super::documents::{self, Config, SavedImage};
use super::error::{ImageProblem, Role};
use super::platform::Platform;
use super::spec::ImageOptions;
use super::store::{self, Store};

type Result<T> = std::result::Result<T, ImageProblem>;

/// Chooses from what `docker save` wrote.
pub(super) fn choose(
    store: &Store,
    reference: Option<&str>,
    options: &ImageOptions,
) -> Result<Chosen> {
    let name = "manifest.json";
    let read = |source| ImageProblem::Read { role: Role::SavedList, name: name.into(), source };
    let list = store.find(name).map_err(read)?.ok_or(ImageProblem::NoImage {
        kind: "docker archive",
        missing: name,
        remedy: "name an archive of an OCI image layout oci-archive:FILE",
    })?;
    let images: Vec<SavedImage> =
        documents::read(Role::SavedList, &store::contents(Role::SavedList, name, &list)?)?;
    let mut candidates = Vec::new();
    for image in saved_named(images, reference)? {
        candidates.push(saved_config(store, image)?);
    }
    if candidates.len() > 1 || options.platform.is_some() {
        let host = Platform::host();
        let wanted = options.platform.as_ref().unwrap_or(&host);
        let platforms: Vec<_> = candidates.iter().map(|(_, _, config)| config.platform()).collect();
        let suiting = platforms.iter().position(|platform| platform.suits(wanted).is_some());
        let at = suiting.ok_or_else(|| no_platform(wanted, &platforms))?;
        candidates.swap(0, at);
    }
    match candidates.into_iter().next() {
        Some((image, bytes, config)) => from_saved_image(store, image, bytes, config),
        None => Err(ImageProblem::Empty(Role::SavedList)),
    }
}

/// The images of a name; without one, the only one there is.
fn saved_named(images: Vec<SavedImage>, reference: Option<&str>) -> Result<Vec<SavedImage>> {
    let tags = |image: &SavedImage| image.repo_tags.clone().unwrap_or_default();
    let has = || images.iter().flat_map(tags).collect();
    match reference {
        None if images.len() == 1 => Ok(images),
        None if images.is_empty() => Err(ImageProblem::Empty(Role::SavedList)),
        None => Err(ImageProblem::Tags { wanted: None, has: has() }),
        Some(reference) => {
            let is_meant =
                |image: &&SavedImage| tags(image).iter().any(|tag| is_same_name(tag, reference));
            let found: Vec<_> = images.iter().filter(is_meant).cloned().collect();
            if found.is_empty() {
                return Err(ImageProblem::Tags { wanted: Some(reference.to_owned()), has: has() });
            }
            Ok(found)
        }
    }
}

/// The config of a saved image; its name is most often its digest.
fn saved_config(store: &Store, image: SavedImage) -> Result<(SavedImage, Vec<u8>, Config)> {
    let region = store.get(Role::Config, &image.config)?;
    let bytes = store::contents(Role::Config, &image.config, &region)?;
    let name = image.config.trim_end_matches(".json");
    let name = name.rsplit(['/', ':']).next().unwrap_or(name);
    if let Some(declared) = Digest::parse(&format!("sha256:{name}")) {
        let mut hasher = declared.hasher();
        hasher.update(&bytes);
        let found = hasher.finish();
        if found != declared {
            return Err(ImageProblem::Digest { role: Role::Config, declared, found });
        }
    }
    let config = documents::read(Role::Config, &bytes)?;
    Ok((image, bytes, config))
}

fn from_saved_image(
    store: &Store,
    image: SavedImage,
    config_bytes: Vec<u8>,
    config: Config,
) -> Result<Chosen> {
    let names = image.layers.unwrap_or_default();
    expect_count(names.len(), &config)?;
    let mut layers = Vec::with_capacity(names.len());
    for (index, (name, diff_id)) in names.into_iter().zip(config.diff_ids()).enumerate() {
        let region = store.get(Role::Layer(index + 1), &name)?;
        layers.push(Blob { name, region, digest: None, diff_id: diff_id.clone() });
    }
    Ok(Chosen { config_bytes, config, layers })
}
