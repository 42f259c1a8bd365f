# Processor time, not time by the clock.
need jq
"$PX" --json exec --cpu-time 1s -c 'while :; do :; done' >"$TMP/out" || echo "exit $?"
jq -c '[.status, (.limits_hit[0] | .limit, (.value >= 700000)), (.cpu_user_s + .cpu_sys_s < 4)]' "$TMP/out"
"$PX" exec --cpu-time 1s -c 'sleep 1.2; echo slept'
