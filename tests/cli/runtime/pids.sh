need runc crun
for runtime in runc crun; do
    # The runtime has more threads than that.
    "$PX" exec --runtime $runtime --pids 3 -- echo enough
    "$PX" --json exec --runtime $runtime --pids 5 -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done 2>/dev/null; true' |
        jq -r 'if .status == "ok" then "not held" else "held" end'
done
