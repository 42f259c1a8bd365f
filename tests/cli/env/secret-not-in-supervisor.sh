# Nor can anybody find the caller's variables in the processes of a running box.
word=$(unique)
"$PX" exec -- sleep "$word" & px=$!
until pgrep -f "^sleep $word" >/dev/null; do sleep 0.02; done
tree() { echo "$1"; local c; for c in $(pgrep -P "$1"); do tree "$c"; done; }
for pid in $(tree $px); do
    (cat "/proc/$pid/environ" 2>/dev/null || true) | tr '\0' '\n' | grep -c hunter2 | grep -v '^0$' && echo "in $(cat /proc/$pid/comm)"
done
kill -9 $px
wait $px 2>/dev/null || true
until_gone "$word"
echo done
