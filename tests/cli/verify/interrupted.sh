# A signal ends it early, and what lay in reach of the boxes is gone, also after kill -9: files, and the servers.
servers() {         # servers PID: px-outside of that process
    local status
    for status in /proc/[0-9]*/status; do
        awk -v of="$1" '/^(Name|Pid|PPid):/ { field[$1] = $2 }
            END { if (field["Name:"] == "px-outside" && field["PPid:"] == of) print field["Pid:"] }' "$status" 2>/dev/null || :
    done
}
left() {            # left PID...: what there is of the files and of those processes
    local pid
    ls -d px-verify-* 2>/dev/null || :
    for pid; do     # one that is dead waits for whoever adopted it
        awk '/^Name:/ { name = $2 } /^State:/ { if (name == "px-outside" && $2 != "Z") print }' "/proc/$pid/status" 2>/dev/null || :
    done
}
for name in INT TERM KILL; do
    rm -f said
    "$PX" sandbox verify >said 2>&1 &
    pid=$!
    until_filled said
    ls -d px-verify-* >/dev/null
    served=$(servers $pid)
    kill -$name $pid
    status=0
    wait $pid 2>/dev/null || status=$?
    for ((i = 0; i < 400; i++)); do
        [ -z "$(left $served)" ] && break
        sleep 0.025
    done
    echo "$name $status $(wc -w <<<"$served") $(left $served | wc -l)"
done
