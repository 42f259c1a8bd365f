# The limit is around the command, not around the runtime, which alone would need more.
as_root
need runc crun
[ -x /usr/bin/python3 ] || skip "there is no /usr/bin/python3 here"
for runtime in runc crun; do
    "$PX" --json exec --runtime $runtime -m 16m -- /usr/bin/python3 -c 'x = bytearray(64 << 20)' |
        jq -c '[.status, .oom_killed, .limits_hit[0].limit]'
    "$PX" --json exec --runtime $runtime -m 8m -- true | jq -c '[.status, .memory_peak_bytes > 0 and .memory_peak_bytes <= 8388608]'
done
