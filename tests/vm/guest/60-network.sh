# tests/vm/guest/60-network.sh - who carries a box's traffic is held by the box's limits, on cgroup v2. A published port needs no
# nftables, which this kernel may not have.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

if [ "$PX_VM_USER" = plain ]; then
    skip relay-is-in-the-group 'this user has no group'
    exit 0
fi

find_relay() {      # the process id of px-net in $relay; without a process for each that is looked at, for the guest is slow
    relay=
    for comm in /proc/[0-9]*/comm; do
        name=
        read -r name <"$comm" || continue
        [ "$name" != px-net ] || relay=${comm%/comm}
    done 2>/dev/null
    relay=${relay#/proc/}
}

"$PX" exec -p 18080:8080 --memory 64m --pids 2 -- sleep 1000 </dev/null >"$tmp/out" 2>"$tmp/err" &
px=$!
tries=0
find_relay
until grep -q '^0::.*/px-' "/proc/$relay/cgroup" 2>/dev/null || [ $tries -ge 200 ] || ! kill -0 $px 2>/dev/null; do
    sleep 0.1
    tries=$((tries + 1))
    find_relay
done
if grep -q '^0::.*/px-' "/proc/$relay/cgroup" 2>/dev/null; then
    pass relay-is-in-the-group
else
    fail relay-is-in-the-group "px-net is '$relay'"
fi
kill $px
wait $px || true
