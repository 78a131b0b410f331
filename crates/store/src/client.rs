//! A store: requests for objects, which wait for their answers.
//!
//! `object_store` knows what each store wants. Its tasks run in threads that all stores of a process share
//! (`runtime`); what is here may be called from any other thread.

mod connector;
mod runtime;

pub(crate) use runtime::spawn;

use crate::error::{Fault, StoreError};
use crate::location::{Location, Scheme};
use crate::traffic::{Counts, counts_of};
use connector::Connector;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, PutMode,
    PutOptions, RetryConfig, UpdateVersion,
};
use runtime::handle;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No byte for so long, and a request is tried again.
const SILENCE: Duration = Duration::from_secs(30);
/// Tries of a request after the first.
const RETRIES: usize = 12;
/// The shortest and the longest pause before one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// The store of a [`Location`].
pub struct Client {
    location: Location,
    store: Arc<dyn ObjectStore>,
    counts: Arc<Counts>,
}

/// Which version of an object some bytes are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) bytes: u64,
    pub(crate) tag: Option<String>,
    /// Nanoseconds since 1970; what a server without tags tells a change by.
    pub(crate) modified: i64,
}

/// How an object may be written.
pub(crate) enum Put {
    /// Whether there is one or not.
    Any,
    /// Only if there is none.
    New,
    /// Only in the place of this version.
    Replace(Version),
}

/// Bytes of an object, and how long they took to begin and to come.
pub(crate) struct Part {
    pub(crate) bytes: Vec<u8>,
    pub(crate) version: Version,
    pub(crate) first_byte: Duration,
    pub(crate) transfer: Duration,
}

impl Version {
    fn of(meta: &ObjectMeta) -> Self {
        Self {
            bytes: meta.size,
            tag: meta.e_tag.clone(),
            modified: meta.last_modified.timestamp_nanos_opt().unwrap_or_default(),
        }
    }

    /// The tag that a store can be asked to compare. A weak one never is equal to another.
    fn strong_tag(&self) -> Option<String> {
        self.tag.clone().filter(|tag| !tag.starts_with("W/"))
    }

    /// Whether it is the same object with the same bytes, as far as the store tells.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.bytes == other.bytes
            && self.tag == other.tag
            && (self.tag.is_some() || self.modified == other.modified)
    }
}

impl Client {
    /// The store of a place. Nothing is asked for yet. A request that fails is tried again after growing
    /// pauses, until `patience` has passed.
    ///
    /// # Errors
    /// What the store needs is not configured.
    pub fn new(location: &Location, patience: Duration) -> Result<Self, StoreError> {
        // An HTTP client wants to know whose cryptography it is to use.
        handle()?;
        let counts = counts_of(&location.to_string());
        let store = build(location, patience, &counts).map_err(|error| {
            let why = match &error {
                object_store::Error::Generic { source, .. } => source.to_string(),
                error => error.to_string(),
            };
            StoreError::Configuration { uri: location.to_string(), why }
        })?;
        Ok(Self { location: location.clone(), store, counts })
    }

    /// Where it is.
    #[must_use]
    pub const fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) const fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// How messages call an object.
    pub(crate) fn name(&self, path: &Path) -> String {
        self.location.with_path(path)
    }

    /// A part of an object. With `expected` it must be that version.
    pub(crate) fn part(
        &self,
        path: &Path,
        range: Range<u64>,
        expected: Option<&Version>,
    ) -> Result<Part, StoreError> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: expected.and_then(Version::strong_tag),
            ..GetOptions::default()
        };
        let part = self.read(path, options, range.end - range.start).map_err(|error| {
            match error {
                // Without a condition nothing can conflict.
                StoreError::Request { fault: Fault::Conflict, object, .. } => {
                    StoreError::Changed { object }
                }
                other => other,
            }
        })?;
        if expected.is_some_and(|expected| !expected.is_same(&part.version)) {
            return Err(StoreError::Changed { object: self.name(path) });
        }
        let wanted = range.end.min(part.version.bytes).saturating_sub(range.start);
        self.check_length(path, wanted, &part)?;
        Ok(part)
    }

    /// All of an object of at most so many bytes.
    pub(crate) fn whole(&self, path: &Path, most: u64) -> Result<Part, StoreError> {
        let part = self.read(path, GetOptions::default(), most)?;
        self.check_length(path, part.version.bytes, &part)?;
        Ok(part)
    }

    fn check_length(&self, path: &Path, expected: u64, part: &Part) -> Result<(), StoreError> {
        let found = part.bytes.len() as u64;
        if found == expected {
            return Ok(());
        }
        Err(StoreError::Length { object: self.name(path), expected, found })
    }

    /// Reads what comes, but not more than was asked for.
    fn read(&self, path: &Path, options: GetOptions, most: u64) -> Result<Part, StoreError> {
        let failed = |error: &_| StoreError::request("read", &self.name(path), error);
        handle()?.block_on(async {
            let start = Instant::now();
            let result = self.store.get_opts(path, options).await.map_err(|e| failed(&e))?;
            let first_byte = start.elapsed();
            let version = Version::of(&result.meta);
            let expected = result.range.end - result.range.start;
            if expected > most {
                let object = self.name(path);
                return Err(StoreError::Length { object, expected: most, found: expected });
            }
            // Not more than was asked for.
            let mut bytes = Vec::with_capacity(expected as usize);
            let mut stream = result.into_stream();
            while let Some(piece) = stream.next().await {
                let piece = piece.map_err(|e| failed(&e))?;
                if (bytes.len() + piece.len()) as u64 > expected {
                    let found = (bytes.len() + piece.len()) as u64;
                    let object = self.name(path);
                    return Err(StoreError::Length { object, expected, found });
                }
                bytes.extend_from_slice(&piece);
            }
            Counts::add(&self.counts.bytes_received, bytes.len() as u64);
            let transfer = start.elapsed() - first_byte;
            Ok(Part { bytes, version, first_byte, transfer })
        })
    }

    /// Writes an object, all at once.
    pub(crate) fn put(&self, path: &Path, bytes: Vec<u8>, how: Put) -> Result<(), StoreError> {
        let length = bytes.len() as u64;
        let mode = match how {
            Put::Any => PutMode::Overwrite,
            Put::New => PutMode::Create,
            // A directory has no such condition; there the last one wins.
            Put::Replace(_) if self.location.scheme == Scheme::Directory => PutMode::Overwrite,
            Put::Replace(version) => {
                PutMode::Update(UpdateVersion { e_tag: version.tag, version: None })
            }
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(path, bytes.into(), options);
        handle()?
            .block_on(put)
            .map_err(|error| StoreError::request("write", &self.name(path), &error))?;
        Counts::add(&self.counts.bytes_sent, length);
        Ok(())
    }

    /// The version of an object; `None` if there is none.
    pub(crate) fn version(&self, path: &Path) -> Result<Option<Version>, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match handle()?.block_on(self.store.get_opts(path, options)) {
            Ok(result) => Ok(Some(Version::of(&result.meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::request("look at", &self.name(path), &error)),
        }
    }

    /// All objects below a prefix, with their versions.
    pub(crate) fn list(&self, prefix: &Path) -> Result<Vec<(Path, Version)>, StoreError> {
        let list = self.store.list(Some(prefix)).map_ok(|meta| {
            let version = Version::of(&meta);
            (meta.location, version)
        });
        let all = handle()?.block_on(list.try_collect());
        all.map_err(|error| StoreError::request("list", &self.name(prefix), &error))
    }

    /// Removes an object. One that is gone already is no error.
    pub(crate) fn delete(&self, path: &Path) -> Result<(), StoreError> {
        let one = futures_util::stream::iter([Ok(path.clone())]).boxed();
        let deleted: Result<Vec<_>, _> =
            handle()?.block_on(self.store.delete_stream(one).try_collect());
        match deleted {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::request("delete", &self.name(path), &error)),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("location", &self.location.to_string())
            .finish_non_exhaustive()
    }
}

fn build(
    location: &Location,
    patience: Duration,
    counts: &Arc<Counts>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let backoff = BackoffConfig { init_backoff: PAUSES.0, max_backoff: PAUSES.1, base: 2.0 };
    let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: patience };
    let options = ClientOptions::new().with_timeout_disabled().with_read_timeout(SILENCE);
    let connector = Connector::new(counts, location.query.clone());
    let bucket = &location.bucket;
    Ok(match location.scheme {
        Scheme::S3 => {
            let builder = AmazonS3Builder::from_env();
            let builder = options_of_s3(builder, options).with_bucket_name(bucket);
            Arc::new(builder.with_retry(retry).with_http_connector(connector).build()?)
        }
        Scheme::Google => {
            let builder = GoogleCloudStorageBuilder::from_env().with_client_options(options);
            let builder = builder.with_bucket_name(bucket).with_retry(retry);
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        Scheme::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_client_options(options);
            let builder = builder.with_container_name(bucket).with_retry(retry);
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        Scheme::Http | Scheme::Https => {
            let scheme = if location.scheme == Scheme::Http { "http" } else { "https" };
            let options = options.with_allow_http(location.scheme == Scheme::Http);
            let builder = HttpBuilder::new().with_url(format!("{scheme}://{bucket}"));
            let builder = builder.with_client_options(options).with_retry(retry);
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        Scheme::Directory => Arc::new(LocalFileSystem::new().with_fsync(true)),
    })
}

/// An endpoint without encryption is meant by whoever names it so.
fn options_of_s3(builder: AmazonS3Builder, options: ClientOptions) -> AmazonS3Builder {
    use object_store::aws::AmazonS3ConfigKey;
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    builder.with_client_options(options.with_allow_http(is_plain))
}
