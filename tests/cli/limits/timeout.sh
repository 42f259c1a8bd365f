# Ended with everything in it, and the cause in words.
word=$(unique)
begin=$(date +%s%N)
try "$PX" --json exec --timeout 1 -- sleep "$word" >"$TMP/out"
spent=$((($(date +%s%N) - begin) / 1000000))
sed -n 2p "$TMP/out"
head -1 "$TMP/out" | jq -c '[.status, .exit_code, .timed_out, .signal, .limits_hit[0].limit, (.wall_s >= 1 and .wall_s < 10)]'
[ $spent -ge 1000 ] || echo "ended after $spent ms"
until_gone "$word"
