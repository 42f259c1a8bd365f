# One after the other: nothing is left in the temporary directory, in /run or among mounts. (Processes are looked for after every test.)
need runc crun
for runtime in runc crun; do
    for ((i = 0; i < 25; i++)); do
        "$PX" exec --runtime $runtime --timeout 60s -- true
    done
    for ((i = 0; i < 5; i++)); do
        "$PX" exec --runtime $runtime -- no-such-command 2>/dev/null || true
    done
    find "$TMP" -mindepth 1 -printf '%P\n'
    ! ls "/run/$runtime" 2>/dev/null | grep '^px-' || true
    grep -c /bundle /proc/self/mountinfo || true
done
