# The whole tree ends, with what it said until then.
need runc crun
for runtime in runc crun; do
    word=$(unique)
    "$PX" --json exec --runtime $runtime --timeout 8s -c "echo before; trap '' TERM; (setsid sleep $word &) ; sleep $word" |
        jq -c '[.status, .exit_code, .timed_out, .stdout, .limits_hit[0].limit]'
    until_gone "sleep $word"
done
