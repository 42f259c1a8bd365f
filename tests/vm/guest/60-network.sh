# tests/vm/guest/60-network.sh - who carries a box's traffic is held by the box's limits, on cgroup v2. A published port needs no
# nftables, which this kernel may not have.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

relay() {           # the process id of px-net, if one lives
    for comm in /proc/[0-9]*/comm; do
        if [ "$(cat "$comm" 2>/dev/null)" = px-net ]; then
            comm=${comm%/comm}
            echo "${comm#/proc/}"
        fi
    done
}

# It ends by itself: a box that is out of memory takes who works for it along, and no group stays.
"$PX" exec -p 18080:8080 --memory 64m --pids 2 -- sleep 1000 </dev/null >"$tmp/out" 2>"$tmp/err" &
px=$!
tries=0
until [ -n "$(relay)" ] && grep -q /px- "/proc/$(relay)/cgroup" 2>/dev/null || [ $tries -ge 300 ] || ! kill -0 $px 2>/dev/null; do
    sleep 0.1
    tries=$((tries + 1))
done
if grep -q '^0::.*/px-' "/proc/$(relay)/cgroup" 2>/dev/null; then
    pass relay-is-in-the-group
else
    fail relay-is-in-the-group "px-net '$(relay)': $(cat "/proc/$(relay)/cgroup" 2>&1)"
fi
kill $px
wait $px
run relay
check_out relay-ends ''
run find /sys/fs/cgroup -type d -name 'px-*'
check_out relay-leaves-no-group ''
run "$PX" --json exec -p 18080:8080 --memory 64m -c 'head -c 200M /dev/zero | tail -c 100M >/dev/null; exit 9'
check_line relay-box-out-of-memory out '"oom_killed": ?true.*"hints": ?\[\]'
