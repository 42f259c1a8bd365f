need runc crun
for runtime in runc crun; do
    "$PX" --json exec --runtime $runtime --disk 1m -c '(head -c 800k /dev/zero >/tmp/a; head -c 800k /dev/zero >$HOME/b) 2>/dev/null; exit 1' |
        jq -c '[.status, .limits_hit[0].limit]'
    "$PX" exec --runtime $runtime -v "$TMP:/tmp/a/b:ro" -c 'echo x >/tmp/a/beside && echo writable around a place'
done
