//! The connection to the kernel: mounted, served by threads, ended.

use super::Translator;
use super::held_back::HeldBack;
use crate::mount::{MountFailure, Settings, Target};
use fuser::{Config, MountOption, Session, SessionACL};
use std::io;
use std::thread::{Builder, JoinHandle};

/// How a connection ends: the threads that serve it have ended.
pub(crate) type Ends = JoinHandle<io::Result<()>>;

/// Mounts, and starts the threads. `ended` is called by the last of them.
pub(crate) fn start(
    translator: Translator,
    target: Target,
    settings: &Settings,
    ended: impl FnOnce() + Send + 'static,
) -> Result<Ends, MountFailure> {
    let config = config(settings);
    let notifier = translator.held_back.as_ref().map(HeldBack::notifier);
    let session = match target {
        Target::Directory(path) => Session::new(translator, &path, &config)
            .map_err(|error| MountFailure::Refused { at: path, error })?,
        Target::Connection(descriptor) => {
            Session::from_fd(translator, descriptor, config.acl, config)
                .map_err(MountFailure::Connection)?
        }
    };
    if let Some(notifier) = notifier {
        // It is empty.
        let _ = notifier.set(session.notifier());
    }
    let run = move || {
        let served = session.run();
        ended();
        served
    };
    Builder::new().name("mount".into()).spawn(run).map_err(MountFailure::Thread)
}

fn config(settings: &Settings) -> Config {
    let flag = |set: bool, yes: MountOption, no: MountOption| if set { yes } else { no };
    let mut options = vec![
        // The program `fusermount3` gets it in a list with commas.
        MountOption::FSName(settings.name.replace(',', ";")),
        // Not as the option for that, which the library does not give to the kernel.
        MountOption::CUSTOM("subtype=undercroft".into()),
        MountOption::DefaultPermissions,
        flag(settings.read_only, MountOption::RO, MountOption::RW),
        flag(settings.devices, MountOption::Dev, MountOption::NoDev),
        flag(settings.set_id, MountOption::Suid, MountOption::NoSuid),
        flag(settings.execute, MountOption::Exec, MountOption::NoExec),
    ];
    if !settings.access_times {
        options.push(MountOption::NoAtime);
    }
    if settings.synchronous {
        options.push(MountOption::Sync);
    }
    let mut config = Config::default();
    config.mount_options = options;
    config.acl = if settings.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(settings.threads.get());
    config.clone_fd = true;
    config
}
