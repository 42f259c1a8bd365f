# kill -9 of px: no process, no mount, no directory, and no cgroup once the next box starts.
need runc crun
groups() { find /sys/fs/cgroup -maxdepth 6 -name 'px-*' -type d 2>/dev/null | wc -l; }
for runtime in runc crun; do
    word=$(unique)
    limits=()
    [ "$AS" != root ] || limits=(-m 64m --pids 50)
    "$PX" exec --runtime $runtime "${limits[@]}" -c "echo up; (setsid sleep $word &); sleep $word" >"$TMP/out" & px=$!
    until_filled "$TMP/out"
    kill -9 $px
    wait $px 2>/dev/null || true
    until_gone "sleep $word"
    until_gone "$runtime.*--bundle /bundle px-$px-"
    find "$TMP" -mindepth 1 ! -name out -printf '%P\n'
    grep -c /bundle /proc/self/mountinfo || true
    # Our own groups, by the word that only this test knows, are swept by the next one.
    "$PX" exec --runtime $runtime "${limits[@]}" -- echo next
    : >"$TMP/out"
done
