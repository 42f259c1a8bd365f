/* The fix for a missing mechanism, for each distribution. */
#include "base/text.h"
#include "doctor/doctor.h"

#define ADD_IDS "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"
#define ROW(raise, family) PX_RAISE_##raise, PX_FAMILY_##family

/* A distribution without its own text uses that of "other". No full stop: the front end adds it. */
static const struct {
    enum px_raise raise;
    enum px_family family;
    const char *text;
} words[] = {
    {ROW(KERNEL, OTHER),
     "Use a kernel from 5.12 on with all namespaces, seccomp filters with notification, and overlayfs built in"},
    {ROW(KERNEL, DEBIAN), "Use the kernel of Debian 12 or newer: apt install linux-image-amd64, then reboot"},
    {ROW(KERNEL, UBUNTU),
     "Use the kernel of Ubuntu 22.04 or newer: apt install linux-generic, then reboot (20.04: "
     "linux-generic-hwe-20.04)"},
    {ROW(KERNEL, FEDORA),
     "Update the kernel: dnf upgrade kernel, then reboot (that of RHEL 8 is too old, that of RHEL 9 is not)"},
    {ROW(KERNEL, ARCH), "Update the kernel: pacman -Syu linux, then reboot"},
    {ROW(KERNEL, ALPINE), "Use the kernel of Alpine 3.15 or newer: apk add linux-lts, then reboot"},
    {ROW(OUTER_FILTER, OTHER),
     "Run px outside of the box or container whose seccomp filter surrounds it, or start that one with a filter that"
     " lets user namespaces through (docker, podman: --security-opt seccomp=unconfined)"},
    {ROW(USERNS_MAX, OTHER), "As root: sysctl -w user.max_user_namespaces=15000 (and a line in /etc/sysctl.d to keep it)"},
    {ROW(USERNS_CLONE, OTHER),
     "As root: sysctl -w kernel.unprivileged_userns_clone=1 (and a line in /etc/sysctl.d to keep it)"},
    {ROW(USERNS_CLONE, ARCH),
     "As root: sysctl -w kernel.unprivileged_userns_clone=1, or use the kernel linux, not linux-hardened"},
    {ROW(USERNS_APPARMOR, OTHER),
     "As root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or load an AppArmor profile for px that has"
     " `userns,`"},
    {ROW(USERNS_APPARMOR, UBUNTU),
     "As root: write `profile px /usr/{bin/px,libexec/px/px-main} flags=(unconfined) { userns, }` to "
     "/etc/apparmor.d/px and load it with apparmor_parser -r, or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
    {ROW(USERNS, OTHER),
     "Something around px refuses user namespaces: run it outside of this container, or start the container with the"
     " right to make them"},
    {ROW(PROCESSES, OTHER), "Allow this user more processes: ulimit -u, or TasksMax= of its systemd slice"},
    {ROW(DESCRIPTORS, OTHER), "Allow this process more open files: ulimit -n 64 at least"},
    {ROW(NO_PROC, OTHER), "Mount /proc: mount -t proc proc /proc"},
    {ROW(SUBIDS, OTHER), "Install newuidmap and newgidmap, and as root: " ADD_IDS},
    {ROW(SUBIDS, DEBIAN), "As root: apt install uidmap && " ADD_IDS},
    {ROW(SUBIDS, UBUNTU), "As root: apt install uidmap && " ADD_IDS},
    {ROW(SUBIDS, FEDORA), "As root: dnf install shadow-utils && " ADD_IDS},
    {ROW(SUBIDS, ARCH), "As root: pacman -S shadow && " ADD_IDS},
    {ROW(SUBIDS, ALPINE), "As root: apk add shadow shadow-uidmap && " ADD_IDS},
    {ROW(NO_NEW_PRIVS, OTHER), "Start px without no_new_privs: newuidmap cannot gain its privileges under it"},
    {ROW(RANGE, OTHER), "Check that /run/px can be written; in a container, give it at least 2002 ids"},
    {ROW(CAPABILITIES, OTHER),
     "Start px as root with its capabilities (SETUID, SETGID, SYS_ADMIN), or as an ordinary user, who needs none"},
    {ROW(PROC, OTHER),
     "Start the container around px with its own /proc unmasked (podman: --security-opt unmask=ALL; docker: "
     "--security-opt systempaths=unconfined)"},
    {ROW(OVERLAY, OTHER), "As root: modprobe overlay (and a line `overlay` in /etc/modules-load.d to keep it)"},
    {ROW(OVERLAY, ALPINE), "As root: modprobe overlay (and a line `overlay` in /etc/modules to keep it)"},
    {ROW(IDMAPPED, OTHER),
     "Keep what root's boxes bind on ext4, xfs, btrfs or tmpfs (from Linux 6.3); elsewhere it is lent to them (px-exec(1), bind)"},
    {ROW(LANDLOCK, OTHER), "Boot a kernel that has Landlock (5.13) with landlock in its lsm= parameter"},
    {ROW(LANDLOCK, DEBIAN), "Put landlock into lsm= of GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, reboot"},
    {ROW(LANDLOCK, UBUNTU), "Put landlock into lsm= of GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, reboot"},
    {ROW(LANDLOCK, FEDORA),
     "grubby --update-kernel=ALL --args=lsm=landlock,lockdown,yama,integrity,selinux,bpf, then reboot"},
    {ROW(LANDLOCK, ARCH),
     "Put landlock into lsm= of GRUB_CMDLINE_LINUX in /etc/default/grub, run grub-mkconfig -o /boot/grub/grub.cfg, "
     "reboot"},
    {ROW(LANDLOCK, ALPINE),
     "Put landlock into lsm= of default_kernel_opts in /etc/update-extlinux.conf, run update-extlinux, reboot"},
    {ROW(LANDLOCK_ABI, OTHER), "Use Linux 6.2 or newer"},
    {ROW(LANDLOCK_ABI, DEBIAN),
     "Use Linux 6.2 or newer: Debian 13, or apt install -t CODENAME-backports linux-image-amd64"},
    {ROW(LANDLOCK_ABI, UBUNTU), "Use Linux 6.2 or newer: Ubuntu 24.04, or apt install linux-generic-hwe-22.04"},
    {ROW(LANDLOCK_ABI, FEDORA), "Use Linux 6.2 or newer: dnf upgrade kernel, then reboot"},
    {ROW(LANDLOCK_ABI, ARCH), "Use Linux 6.2 or newer: pacman -Syu linux, then reboot"},
    {ROW(DELEGATE, OTHER), "Start px in a cgroup of this user's own: systemd-run --user --scope -p Delegate=yes px"},
    {ROW(DELEGATE, ALPINE),
     "As root, make a cgroup below /sys/fs/cgroup, give it with its cgroup.procs and cgroup.subtree_control to the "
     "user, and start px in a group below it"},
    {ROW(CGROUP, OTHER),
     "Mount a cgroup hierarchy that px may write, with the memory, pids and cpu controllers (in a container: not "
     "read-only)"},
    {ROW(CGROUP, ALPINE),
     "As root: rc-update add cgroups && rc-service cgroups start (in a container: mount it writable)"},
    {ROW(TUN, OTHER),
     "As root: modprobe tun (and a line `tun` in /etc/modules-load.d to keep it; in a container: --device "
     "/dev/net/tun)"},
    {ROW(TUN, ALPINE),
     "As root: modprobe tun (and a line `tun` in /etc/modules to keep it; in a container: --device /dev/net/tun)"},
    {ROW(TUN_ACCESS, OTHER), "As root: chmod 0666 /dev/net/tun, which is what udev makes it"},
    {ROW(NFT, OTHER), "As root: modprobe nf_tables (and a line `nf_tables` in /etc/modules-load.d to keep it)"},
    {ROW(NFT, ALPINE), "As root: modprobe nf_tables (and a line `nf_tables` in /etc/modules to keep it)"},
};

const char *px_raise_words(enum px_raise raise, enum px_family family)
{
    const char *general = "";
    for (size_t i = 0; i < PX_COUNT_OF(words); i++) {
        if (words[i].raise != raise)
            continue;
        if (words[i].family == family)
            return words[i].text;
        if (words[i].family == PX_FAMILY_OTHER)
            general = words[i].text;
    }
    return general;
}
