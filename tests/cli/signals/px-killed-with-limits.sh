# The control group goes with the next start.
as_root
word=$(unique)
"$PX" exec --memory 64m -c "echo up; sleep $word" >"$TMP/out" & px=$!
until_filled "$TMP/out"
group=$(sed -n 's/.*\(px-[^/]*\)$/\1/p' "/proc/$(pgrep -f "^sleep $word")/cgroup" | sort -u)
kill -9 $px
wait $px 2>/dev/null || true
until_gone "$word"
for name in $group; do
    soon group_empty "$name"            # a process that is gone for pgrep may still leave its group
done
"$PX" exec --memory 64m -- true
for name in $group; do
    soon group_gone "$name"
done
[ -n "$group" ] && echo swept
