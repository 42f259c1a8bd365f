/* kernel/abi.h - structs and numbers of the kernel's interface that older headers lack.
 *
 * Why:     a distribution's headers may be older than the kernel px runs on. Values are the kernel's and never change.
 * Mustn't: include kernel headers that clash with the C library's. */
#pragma once

#include <stdint.h>

/* clone3 */
struct px_clone_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};
enum {
    PX_CLONE_VM = 0x00000100,
    PX_CLONE_FILES = 0x00000400,
    PX_CLONE_VFORK = 0x00004000,
    PX_CLONE_PARENT = 0x00008000,
    PX_CLONE_NEWNS = 0x00020000,
    PX_CLONE_PIDFD = 0x00001000,
    PX_CLONE_CHILD_CLEARTID = 0x00200000,
    PX_CLONE_NEWCGROUP = 0x02000000,
    PX_CLONE_NEWUTS = 0x04000000,
    PX_CLONE_NEWIPC = 0x08000000,
    PX_CLONE_NEWUSER = 0x10000000,
    PX_CLONE_NEWPID = 0x20000000,
    PX_CLONE_NEWNET = 0x40000000,
};
#define PX_CLONE_CLEAR_SIGHAND 0x100000000ULL
#define PX_CLONE_INTO_CGROUP 0x200000000ULL

/* mounts */
struct px_mount_attr {
    uint64_t attr_set, attr_clr, propagation, userns_fd;
};
enum {
    PX_MOUNT_RDONLY = 0x1,
    PX_MOUNT_NOSUID = 0x2,
    PX_MOUNT_NODEV = 0x4,
    PX_MOUNT_NOEXEC = 0x8,
    PX_MOUNT_IDMAP = 0x100000,
    PX_OPEN_TREE_CLONE = 1,
    PX_OPEN_TREE_CLOEXEC = 02000000,
    PX_AT_EMPTY_PATH = 0x1000,
    PX_AT_RECURSIVE = 0x8000,
    PX_MOVE_MOUNT_F_EMPTY_PATH = 0x4,
    PX_MOVE_MOUNT_T_EMPTY_PATH = 0x40,
    PX_FSOPEN_CLOEXEC = 1,
    PX_FSMOUNT_CLOEXEC = 1,
    PX_FSCONFIG_SET_FLAG = 0,
    PX_FSCONFIG_SET_STRING = 1,
    PX_FSCONFIG_CMD_CREATE = 6,
    PX_FSCONFIG_CMD_RECONFIGURE = 7,
    PX_FSPICK_CLOEXEC = 1,
};

/* Landlock */
struct px_landlock_ruleset_attr {
    uint64_t handled_access_fs, handled_access_net, scoped;
};
struct px_landlock_path_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));
enum {
    PX_LL_EXECUTE = 1 << 0,
    PX_LL_WRITE_FILE = 1 << 1,
    PX_LL_READ_FILE = 1 << 2,
    PX_LL_READ_DIR = 1 << 3,
    PX_LL_REMOVE_DIR = 1 << 4,
    PX_LL_REMOVE_FILE = 1 << 5,
    PX_LL_MAKE_CHAR = 1 << 6,
    PX_LL_MAKE_DIR = 1 << 7,
    PX_LL_MAKE_REG = 1 << 8,
    PX_LL_MAKE_SOCK = 1 << 9,
    PX_LL_MAKE_FIFO = 1 << 10,
    PX_LL_MAKE_BLOCK = 1 << 11,
    PX_LL_MAKE_SYM = 1 << 12,
    PX_LL_REFER = 1 << 13,      /* ABI 2 */
    PX_LL_TRUNCATE = 1 << 14,   /* ABI 3 */
    PX_LL_IOCTL_DEV = 1 << 15,  /* ABI 5 */
    PX_LL_SCOPE_ABSTRACT_UNIX = 1 << 0, /* ABI 6 */
    PX_LL_SCOPE_SIGNAL = 1 << 1,        /* ABI 6 */
    PX_LL_CREATE_RULESET_VERSION = 1,
    PX_LL_RULE_PATH_BENEATH = 1,
};
