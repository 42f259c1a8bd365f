# One bound for all writable directories together.
need jq
"$PX" exec --disk 4m -c 'head -c 3m /dev/zero >/tmp/a; head -c 3m /dev/zero >~/b 2>/dev/null; head -c 3m /dev/zero >/dev/shm/c 2>/dev/null; cat /tmp/a ~/b /dev/shm/c 2>/dev/null | wc -c' >"$TMP/sum" 2>/dev/null || true
[ "$(cat "$TMP/sum")" -le 4194304 ] && [ "$(cat "$TMP/sum")" -ge 3145728 ] && echo held
"$PX" --json exec --disk 2m -c 'head -c 3m /dev/zero >/tmp/a' | jq -c '[.status, .limits_hit[0].limit]' || true
"$PX" exec --disk 4m -c 'ls -d /.scratch 2>/dev/null; touch /tmp/f ~/f /dev/shm/f && echo writable'
