//! What a server may not do any more once its mount answers.
//!
//! It reads images of strangers for as long as it lives. All that it changes is open by then: the
//! image, the log, the connection to the kernel. So it is kept from opening anything else for change,
//! from programs, from networks, and from other processes. Two things remain that it needs: to unmount,
//! and to read files, for it goes on looking whether the kernel has mounted the image as well. The
//! server of a volume on a network disk keeps connections, too: it must be able to make them anew.

use libc::{AF_UNIX, AT_REMOVEDIR, O_ACCMODE, O_CREAT, O_RDWR, O_TRUNC, O_WRONLY};
use seccompiler::SeccompCmpOp::{MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter_all_threads,
};

/// Calls that fail, with whatever arguments.
const FORBIDDEN: &[i64] = &[
    // Programs, and other processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    // Names and permissions of files.
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_renameat2,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    // Files opened in ways whose flags a filter does not see.
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    // Mounts, but for their end; name spaces.
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_keyctl,
];

/// Calls that fail where no part of the image is behind a network.
const FORBIDDEN_CONNECTIONS: &[i64] = &[libc::SYS_connect, libc::SYS_bind];

/// Older forms of some of them.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_mknod,
    libc::SYS_mkdir,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_unlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD: &[i64] = &[];

/// Confines all threads of this process, and those that they start. With `networks` it may make
/// connections.
///
/// # Errors
/// The kernel has no filters of system calls, or this processor is not known.
pub(super) fn confine(networks: bool) -> Result<(), Error> {
    apply_filter_all_threads(&program(networks)?)
}

fn program(networks: bool) -> Result<BpfProgram, BackendError> {
    let connections = if networks { &[] } else { FORBIDDEN_CONNECTIONS };
    let always = [FORBIDDEN, FORBIDDEN_OLD, connections].concat();
    let always = always.into_iter().map(|call| (call, Vec::new()));
    // The log and the service manager have sockets of the machine.
    let sockets =
        if networks { Vec::new() } else { vec![(libc::SYS_socket, vec![rule(0, Ne, AF_UNIX)?])] };
    let sometimes = [
        (libc::SYS_openat, changing_open(2)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, changing_open(1)?),
        // The private place of a mount goes with it, as an empty directory.
        (libc::SYS_unlinkat, vec![rule(2, MaskedEq(bits(AT_REMOVEDIR)), 0)?]),
    ];
    let architecture = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let rules = always.chain(sometimes).chain(sockets).collect();
    SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)?.try_into()
}

/// Openings that are for more than reading; the flags are this argument.
fn changing_open(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let has = |mask, value| rule(flags, MaskedEq(bits(mask)), value);
    Ok(vec![
        has(O_ACCMODE, O_WRONLY)?,
        has(O_ACCMODE, O_RDWR)?,
        has(O_CREAT, O_CREAT)?,
        has(O_TRUNC, O_TRUNC)?,
    ])
}

fn rule(argument: u8, operator: SeccompCmpOp, value: i32) -> Result<SeccompRule, BackendError> {
    let width = SeccompCmpArgLen::Dword;
    let condition = SeccompCondition::new(argument, width, operator, bits(value))?;
    SeccompRule::new(vec![condition])
}

fn bits(flags: i32) -> u64 {
    flags.cast_unsigned().into()
}
