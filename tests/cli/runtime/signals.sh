# Signals go to the command, which may handle them; and the box ends with it.
need runc crun
for runtime in runc crun; do
    "$PX" exec --runtime $runtime -c 'trap "echo got it; exit 9" TERM; echo up; while :; do sleep 0.05; done' >"$TMP/out" & px=$!
    until_filled "$TMP/out"
    kill -TERM $px
    status=0
    wait $px || status=$?
    echo "$(tail -1 "$TMP/out") $status"
    : >"$TMP/out"
done
