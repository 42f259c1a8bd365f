# tests/vm/guest/10-engine.sh - px exec on cgroup v2: what runs, what is confined, what is limited, what is left behind.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

cgroup=/sys/fs/cgroup
has_limits=true
[ "$PX_VM_USER" != plain ] || has_limits=false

# ---- snapshots of the host, to be the same before and after ----

# No command substitution and no pipe: their own processes would be in the list. Kernel threads (of pid 2) come and go.
list_processes() {  # list_processes FILE
    for stat in /proc/[0-9]*/stat; do
        # A process may end between the glob and the read.
        { read -r line <"$stat"; } 2>/dev/null || continue
        pid=${line%% *}
        name=${line#*(}
        rest=${line##*) }
        parent=${rest#* }
        parent=${parent%% *}
        [ "$parent" = 2 ] || [ "$pid" = 2 ] || echo "$pid (${name%)*})"
    done >"$1"
}

list_cgroups() {    # list_cgroups FILE
    find $cgroup -type d | sort >"$1"
}

check_same() {      # check_same NAME BEFORE AFTER: nothing new
    if grep -v -x -F -f "$2" "$3" >"$tmp/out"; then
        : >"$tmp/err"
        fail "$1" 'left behind, see below'
    else
        pass "$1"
    fi
}

# A killed px cannot wait for its box, so the kernel gets a moment; the bound is only for the case that fails.
check_processes() { # check_processes NAME
    tries=0
    while [ $tries -lt 50 ]; do
        list_processes "$tmp/processes.now"
        grep -q -v -x -F -f "$tmp/processes" "$tmp/processes.now" || break
        sleep 0.1
        tries=$((tries + 1))
    done
    check_same "$1" "$tmp/processes" "$tmp/processes.now"
}

# ---- what runs ----

check_runs() {
    run "$PX" exec -- echo hello
    check_out echo hello
    run "$PX" exec -c 'exit 42'
    check_status exit-status 42
    run "$PX" exec -c 'kill -9 $$'
    check_status killed-by-signal 137
    run "$PX" exec --timeout 1 -- sleep 60
    check_status timeout 124
    run "$PX" exec -- id -u
    check_out inner-uid 1000
    if [ -e /usr/bin/python3 ]; then
        run "$PX" exec -- python3 -c 'print(6 * 7)'
        check_out python 42
    else
        skip python 'the guest has no python3'
    fi
}

# ---- what is confined ----

check_confined() {
    run "$PX" exec -- cat /proc/self/status
    check_line no-capabilities out '^CapEff:[[:space:]]+0+$'
    check_line no-new-privileges out '^NoNewPrivs:[[:space:]]+1$'
    check_line seccomp-filter out '^Seccomp:[[:space:]]+2$'
    # The box says "refused" itself, so that a px that starts nothing does not pass.
    run "$PX" exec -c 'touch /etc/x 2>/dev/null || echo refused'
    check_out etc-read-only refused
    run cat /srv/px-vm/secret
    check_out secret-on-host px-vm-host-secret
    run "$PX" exec -c 'cat /srv/px-vm/secret 2>/dev/null || echo absent'
    check_out host-file-invisible absent
    run "$PX" exec -c 'test -e /sys/fs/cgroup/cgroup.procs || echo absent'
    check_out no-cgroups-inside absent
}

check_id_count() {  # check_id_count COUNT
    kind=range
    [ "$1" -gt 1 ] || kind=single
    wanted=range
    [ "$PX_VM_USER" != plain ] || wanted=single
    if [ $kind = $wanted ]; then
        pass id-map
    else
        fail id-map "$1 ids are mapped: $kind, not $wanted"
    fi
}

# Columns of uid_map: inside, outside, count. Host uid 0 is in no map; a caller with a range gets one.
check_ids() {
    run "$PX" exec -- cat /proc/self/uid_map
    if [ "$status" -ne 0 ] || ! [ -s "$tmp/out" ]; then
        fail id-map "exit status $status, no map"
    elif awk '$2 == 0 { found = 1 } END { exit !found }' "$tmp/out"; then
        fail id-map 'host uid 0 is mapped into the box'
    elif [ "$PX_VM_USER" = tester ] && ! [ -u /usr/bin/newuidmap ]; then
        skip id-map 'the host has no newuidmap'
    else
        ids=$(awk '{ sum += $3 } END { print sum }' "$tmp/out")
        check_id_count "$ids"
    fi
}

# ---- what is limited ----

# tail keeps the end of a pipe in memory: 100 MB do not fit, 10 MB do.
too_much='head -c 200M /dev/zero | tail -c 100M | wc -c'
enough='head -c 20M /dev/zero | tail -c 10M | wc -c'

check_memory() {
    run "$PX" exec --memory 64m -c "$enough"
    check_out memory-enough 10485760
    run "$PX" exec --memory 64m -c "$too_much"
    check_status memory-killed 137
    run "$PX" --json exec --memory 64m -c "$too_much"
    check_line memory-in-result out '"status": ?"memory"'
}

# Half a processor is a quota of half the period, in whichever cgroup px chose; it is there only while the box lives.
check_cpus() {
    "$PX" exec --cpus 0.5 -- sleep 3 </dev/null >"$tmp/out" 2>"$tmp/err" &
    box=$!
    seen=false
    while ! $seen && kill -0 $box 2>/dev/null; do
        find $cgroup -name cpu.max -exec cat {} + >"$tmp/quotas" 2>/dev/null
        ! awk '$1 != "max" && $1 * 2 == $2 { found = 1 } END { exit !found }' "$tmp/quotas" || seen=true
    done
    status=0
    wait $box || status=$?
    if ! $seen; then
        fail cpus 'no cgroup had the quota'
    else
        check_status cpus 0
    fi
}

# The caller alone in a cgroup of its own, as `systemd-run --user --scope -p Delegate=yes px ...` puts it.
check_scope() {
    [ "$PX_VM_USER" = tester ] || return 0
    mkdir $cgroup/tester/scope
    run sh -c 'echo $$ >/sys/fs/cgroup/tester/scope/cgroup.procs && exec "$@"' sh "$PX" exec --memory 64m -- echo alone
    check_out memory-in-scope alone
    find $cgroup/tester/scope -depth -type d -exec rmdir {} \;
}

# sh, not bash: bash tries a failed fork again for half a minute. Each line is a process that started.
check_pids() {
    # shellcheck disable=SC2016  # for the inner shell
    run "$PX" exec --pids 32 -- sh -c 'i=0; while [ $i -lt 100 ]; do sleep 30 & i=$((i + 1)); echo $i; done'
    started=$(wc -l <"$tmp/out")
    if ! $has_limits && [ "$status" -eq 125 ] && grep -q PX013 "$tmp/err"; then
        pass pids           # refused by name is as good as held: the limit was not ignored
    elif [ "$started" -ge 1 ] && [ "$started" -lt 32 ]; then
        pass pids
    else
        fail pids "$started processes were started with exit status $status"
    fi
}

# All three at once: a px that merely fails must not look like one that refuses.
check_refused() {   # check_refused NAME OPTION VALUE
    run "$PX" exec "$2" "$3" -- echo unlimited
    if [ "$status" -ne 125 ]; then
        fail "$1" "exit status $status, not 125"
    elif [ -n "$out" ]; then
        fail "$1" 'the command ran without its limit'
    else
        check_line "$1" err PX013
    fi
}

check_limits() {
    if $has_limits; then
        check_memory
        check_cpus
        check_scope
    else
        check_refused memory-refused --memory 64m
    fi
    check_pids
}

# ---- what is left behind ----

# Sets box to the pid of a px whose box is running; false if it does not come up.
start_box() {       # start_box OPTION...
    "$PX" exec "$@" -c 'echo up; sleep 300' </dev/null >"$tmp/out" 2>"$tmp/err" &
    box=$!
    tries=0
    until [ -s "$tmp/out" ]; do
        kill -0 $box 2>/dev/null && [ $tries -lt 100 ] || return 1
        sleep 0.1
        tries=$((tries + 1))
    done
}

check_killed_px() {
    set --
    ! $has_limits || set -- --memory 64m
    if start_box "$@"; then
        kill -9 $box
        wait $box 2>/dev/null
        check_processes killed-px-leaves-no-process
    else
        fail killed-px-leaves-no-process 'the box did not start'
        return
    fi
    $has_limits || return 0
    # The next start sweeps what the dead px could not.
    run "$PX" exec --memory 64m -- true
    list_cgroups "$tmp/cgroups.now"
    check_same killed-px-cgroup-is-swept "$tmp/cgroups" "$tmp/cgroups.now"
}

main() {
    list_processes "$tmp/processes"
    cat /proc/self/mountinfo >"$tmp/mounts"
    # px may keep one directory above its boxes for good; boxes have names of their own, so each one left is new.
    if $has_limits; then
        run "$PX" exec --memory 64m -- true
        check_status first-limit 0
    fi
    list_cgroups "$tmp/cgroups"
    check_runs
    check_confined
    check_ids
    check_limits
    check_processes no-process-left
    list_cgroups "$tmp/cgroups.now"
    check_same no-cgroup-left "$tmp/cgroups" "$tmp/cgroups.now"
    check_killed_px
    cat /proc/self/mountinfo >"$tmp/mounts.now"
    run cmp "$tmp/mounts" "$tmp/mounts.now"
    check_status mounts-unchanged 0
}

main
