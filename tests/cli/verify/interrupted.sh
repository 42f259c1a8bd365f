# A signal ends it early, and what lay in reach of the boxes is gone, also after kill -9.
for name in INT TERM KILL; do
    rm -f said
    "$PX" sandbox verify >said 2>&1 &
    pid=$!
    until_filled said
    ls -d px-verify-* >/dev/null
    kill -$name $pid
    status=0
    wait $pid 2>/dev/null || status=$?
    for ((i = 0; i < 400; i++)); do
        [ -z "$(ls -d px-verify-* 2>/dev/null)" ] && break
        sleep 0.025
    done
    echo "$name $status $(ls -d px-verify-* 2>/dev/null | wc -l)"
done
