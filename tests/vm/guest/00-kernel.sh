# tests/vm/guest/00-kernel.sh - what this guest's kernel offers: the facts that the other scripts rely on.
#
# A line `# fact: ...` is shown by the host; it is no check. The checks say that the guest is the machine it claims to be.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

fact() {
    [ "$PX_VM_USER/$PX_VM_KIND" != root/static ] || echo "# fact: $*"
}

fact "kernel $(uname -r), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
fact "lsm: $(cat /sys/kernel/security/lsm 2>/dev/null || echo unknown)," \
    "unprivileged_userns_clone: $(cat /proc/sys/kernel/unprivileged_userns_clone 2>/dev/null || echo absent)"

run sh -c 'tr " " "\n" </sys/fs/cgroup/cgroup.controllers | grep -c -x -E "cpu|memory|pids"'
check_out kernel-controllers 3
run sh -c 'cut -d: -f3 /proc/self/cgroup'
check_out caller-in-own-leaf "/$PX_VM_USER/session"
run unshare --user --map-root-user id -u
check_out user-namespace 0

# The upper directory on tmpfs and on the file system of the homes, as an ordinary user would have them.
for place in /tmp "$HOME"; do
    work=$(mktemp -d "$place/overlay.XXXXXX")
    mkdir "$work/lower" "$work/upper" "$work/work" "$work/merged"
    echo below >"$work/lower/file"
    run unshare --user --map-root-user --mount sh -c "mount -t overlay -o \
userxattr,lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/work overlay $work/merged &&
echo above >$work/merged/file && cat $work/lower/file $work/upper/file"
    check_out "overlay-in-user-namespace$(dirname "$place/x" | tr / -)" "$(printf 'below\nabove')"
    rm -rf "$work"
done

if [ "$PX_VM_USER" = tester ]; then
    if [ -u /usr/bin/newuidmap ]; then
        run unshare --map-users=auto --map-groups=auto --map-root-user --user sh -c 'wc -l </proc/self/uid_map'
        check_out range-of-ids 2
    else
        skip range-of-ids 'the host has no newuidmap'
    fi
    run mkdir /sys/fs/cgroup/tester/trial
    check_status delegated-cgroup 0
    rmdir /sys/fs/cgroup/tester/trial
fi
if [ "$PX_VM_USER" = plain ]; then
    run mkdir /sys/fs/cgroup/plain/trial
    check_status no-cgroup-for-plain 1
fi

# System calls without a command of their own: the Landlock ABI, and which file systems take an idmapped mount.
if command -v python3 >/dev/null && [ "$PX_VM_USER" = root ]; then
    run python3 -c '
import ctypes, os, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
print("landlock ABI", libc.syscall(444, None, 0, 1))
class Attr(ctypes.Structure):
    _fields_ = [("set", ctypes.c_uint64), ("clear", ctypes.c_uint64), ("propagation", ctypes.c_uint64),
                ("userns_fd", ctypes.c_uint64)]
holder = subprocess.Popen(["unshare", "--user", "sleep", "30"])
for attempt in range(100):
    if os.readlink("/proc/%d/ns/user" % holder.pid) != os.readlink("/proc/self/ns/user"):
        break
    time.sleep(0.1)
for kind in ("uid", "gid"):
    with open("/proc/%d/%s_map" % (holder.pid, kind), "w") as file:
        file.write("0 1500 1")
userns = os.open("/proc/%d/ns/user" % holder.pid, os.O_RDONLY)
for path in ("/tmp", "/home"):
    tree = libc.syscall(428, -100, path.encode(), 1)
    attr = Attr(0x100000, 0, 0, userns)
    r = libc.syscall(442, tree, b"", 0x1000, ctypes.byref(attr), 32)
    with open("/proc/mounts") as mounts:
        kind = [line.split()[2] for line in mounts if line.split()[1] == path] or ["tmpfs"]
    print("idmapped mount on", kind[-1] + ":", "yes" if r == 0 else os.strerror(ctypes.get_errno()))
holder.kill()
'
    check_line landlock out '^landlock ABI [1-9]'
    while read -r line; do
        fact "$line"
    done <"$tmp/out"
elif [ "$PX_VM_USER" = root ]; then
    skip landlock 'the guest has no python3'
fi
