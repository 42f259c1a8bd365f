# tests/vm/guest/27-core.sh - a crash in a box does not start the host's core handler (see make_core_handler in init).
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

count() {           # count SIGNAL: how many crashes the handler has noted
    grep -c -x "$1" /run/px-vm.cores
}

# A crash outside, by SIGBUS (7), shows that the handler runs; all that were before it have been noted by then, or soon.
settle() {
    before=$(count 7)
    (ulimit -c 0; exec sh -c 'kill -BUS $$') 2>/dev/null
    tries=0
    while [ "$(count 7)" -le "$before" ] && [ $tries -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ "$(count 7)" -gt "$before" ]
}

check_none() {      # check_none NAME
    if ! settle; then
        skip "$1" 'the kernel of the guest starts no handler'
    elif [ "$(count 11)" -eq "$cores" ]; then
        pass "$1"
    else
        fail "$1" 'the handler was started for a crash in the box'
    fi
}

cores=$(count 11)
run "$PX" exec -c 'kill -SEGV $$'
check_status core-crash 139
check_none core-handler
run "$PX" exec -c 'ulimit -c 0; ulimit -S -c 0; sh -c "kill -SEGV \$\$"'
check_none core-handler-after-ulimit
run "$PX" box start --name c
run "$PX" box exec c -c 'ulimit -c 0; kill -SEGV $$'
check_none core-handler-living
run "$PX" box stop c

# A hard limit of 0: root raises it, others cannot, and say so.
run sh -c 'ulimit -H -c 0; exec "$0" --json exec -c "kill -SEGV \$\$"' "$PX"
if [ "$PX_VM_USER" = root ]; then
    check_none core-hard-limit-raised
else
    check_line core-hard-limit-told out '"missing":\[.*core: a crash'
fi
