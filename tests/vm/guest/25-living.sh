# tests/vm/guest/25-living.sh - a box that stays, on a kernel that does not tell a process's parent by its pidfd and has cgroup v2.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

export PX_HOME="$tmp/home"
run "$PX" box start --name l
check_out living-starts l
run "$PX" --json box exec l -c 'unshare -U true; unshare -U true; exit 3'
check_status living-status 3
check_line living-denials out '"denials": ?\[\{"op":"syscall","target":"unshare",[^]]*"count":2\}\]'
# A process that has left its command's session is the box's here.
run "$PX" --json box exec l -c 'setsid unshare -U true; true'
check_line living-denials-of-nobody out '"denials": ?\[\]'
run "$PX" --json box show l
check_line living-denials-of-the-box out '"denials": ?\[\{"op":"syscall","target":"unshare",[^]]*"count":1\}\]'
run "$PX" box stop l
check_status living-ends 0

if [ "$PX_VM_USER" = root ]; then
    run "$PX" box start --name m --memory 64m
    check_out living-memory-starts m
    run "$PX" --json box exec m -c 'head -c 200M /dev/zero | tail -c 100M >/dev/null; exit 9'
    check_line living-memory-of-one-process out '"status": ?"memory".*"oom_killed": ?true.*"memory.events oom_kill"'
    run "$PX" --json box exec m -c 'exit 9'
    check_line living-memory-later out '"status": ?"nonzero".*"oom_killed": ?false'
    run "$PX" box stop m
    check_status living-memory-ends 0
fi
