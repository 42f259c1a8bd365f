# tests/vm/guest/40-runtime.sh - boxes that runc and crun make, where cgroup v2 holds the limits and ids are subordinate ones.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

if [ "$PX_VM_KIND" != static ]; then
    skip runtime 'every px hands these over to the same px-main'
    exit 0
fi
home=/home/px-runtime   # of root; before Linux 6.3 a tmpfs takes no idmapped mount
[ "$PX_VM_USER" = root ] || home=$tmp/bind
mkdir -p "$home"
for runtime in runc crun; do
    if ! command -v $runtime >/dev/null; then
        skip "runtime/$runtime" "there is no $runtime on the host that made this guest"
        continue
    fi
    run "$PX" exec --runtime $runtime -v "$home:/bind" -c 'echo hello; echo made >/bind/file; exit 3'
    check_status "runtime/$runtime/status" 3
    check_line "runtime/$runtime/output" out '^hello$'
    run stat -c '%u' "$home/file"
    check_out "runtime/$runtime/owner" "$(id -u)"
    rm -f "$home/file"
    run "$PX" exec --runtime $runtime -c 'awk "\$2 == 0" /proc/self/uid_map | wc -l; id -u'
    check_out "runtime/$runtime/ids" "$(printf '0\n1000')"
    if [ "$PX_VM_USER" = plain ]; then
        run "$PX" exec --runtime $runtime -m 16m -- true
        check_line "runtime/$runtime/memory-refused" err '^PX013'
        continue
    fi
    run "$PX" --json exec --runtime $runtime -m 16m -c 'head -c 64m /dev/zero | tail >/dev/null'
    check_line "runtime/$runtime/memory" out '"status":"memory".*"oom_killed":true.*"memory=cgroup2"'
    run find /sys/fs/cgroup -name 'px-*'
    check_out "runtime/$runtime/no-cgroup-left" ''
done
