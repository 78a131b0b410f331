//! The connection to the kernel: mounted, served by threads, ended.

use super::Translator;
use super::forgetting::Forgetting;
use super::kernel::Kernel;
use crate::attach::attach;
use crate::point::MountPoint;
use crate::settings::{MountFailure, Settings, Target};
use crate::unmount::InUse;
use fuser::{Config, Session, SessionACL};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// How a connection ends: the threads that serve it have ended.
pub(crate) type Ends = JoinHandle<io::Result<()>>;

/// Mounts, and starts the threads; returns the mount if it is one of this process. `ended` is called by
/// the last of them.
pub(crate) fn start(
    translator: Translator,
    target: Target,
    settings: &Settings,
    ended: impl FnOnce() + Send + 'static,
) -> Result<(Ends, Option<MountPoint>), MountFailure> {
    let (mount, connection) = match target {
        Target::Directory(path) => {
            let attached = attach(&path, settings);
            let (mount, connection) =
                attached.map_err(|error| MountFailure::Refused { at: path, error })?;
            (Some(mount), connection)
        }
        Target::Connection(descriptor) => (None, descriptor),
    };
    let started = serve(translator, connection, mount.clone(), settings, ended);
    if started.is_err() {
        detach(mount.as_ref());
    }
    Ok((started?, mount))
}

fn serve(
    translator: Translator,
    connection: OwnedFd,
    mount: Option<MountPoint>,
    settings: &Settings,
    ended: impl FnOnce() + Send + 'static,
) -> Result<Ends, MountFailure> {
    let (server, root) = (Arc::clone(&translator.server), translator.root);
    let config = config(settings);
    // Without a cache of writes the kernel takes the times of each answer.
    let forgetting = if settings.holds_data_back() {
        let own = connection.try_clone().map_err(MountFailure::Connection)?;
        Some(Forgetting::start(&server, own).map_err(MountFailure::Thread)?)
    } else {
        None
    };
    let session = Session::from_fd(translator, connection, config.acl, config);
    let session = session.map_err(|error| match &mount {
        Some(mount) => MountFailure::Refused { at: mount.directory().to_owned(), error },
        None => MountFailure::Connection(error),
    })?;
    // It is empty.
    let _ = server.kernel.set(Box::new(Kernel { notifier: session.notifier(), root, forgetting }));
    drop(server);
    let run = move || {
        let served = session.run();
        if served.is_err() {
            detach(mount.as_ref());
        }
        ended();
        served
    };
    Builder::new().name("mount".into()).spawn(run).map_err(MountFailure::Thread)
}

/// Takes away a mount that does not answer.
fn detach(mount: Option<&MountPoint>) {
    if let Some(mount) = mount {
        // It may have been unmounted.
        let _ = mount.unmount(InUse::Detach);
    }
}

fn config(settings: &Settings) -> Config {
    let mut config = Config::default();
    config.acl = if settings.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(settings.threads.get());
    config.clone_fd = true;
    config
}
