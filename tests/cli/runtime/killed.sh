# kill -9 of px: no process, no mount, no directory, and no cgroup once the next box has started.
need runc crun
there() { pgrep -f "^sleep $1" >/dev/null; }
for runtime in runc crun; do
    word=$(unique)
    limits=() group=
    [ "$AS" != root ] || limits=(-m 64m --pids 50)
    "$PX" exec --runtime $runtime "${limits[@]}" -c "echo up; (setsid sleep $word &); exec sleep $word" >"$TMP/out" & px=$!
    until_filled "$TMP/out"
    soon there "$word"
    for pid in $(pgrep -f "^sleep $word"); do
        group+=" $(sed -n 's/.*\(px-[^/]*\)$/\1/p' "/proc/$pid/cgroup" | sort -u)"
    done
    [ "$AS" != root ] || [ -n "${group// /}" ] || echo "it was in no cgroup"
    kill -9 $px
    wait $px 2>/dev/null || true
    until_gone "sleep $word"
    until_gone "$runtime.*--bundle /bundle px-$px-"
    for name in $group; do
        soon group_empty "$name"
    done
    find "$TMP" -mindepth 1 ! -name out -printf '%P\n'
    grep -c /bundle /proc/self/mountinfo || true
    "$PX" exec --runtime $runtime "${limits[@]}" -- echo next
    for name in $group; do
        soon group_gone "$name"
    done
    : >"$TMP/out"
done
