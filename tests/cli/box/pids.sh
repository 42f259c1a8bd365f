# The same for processes, where a cgroup counts them.
as_root
need jq
trap '"$PX" box stop --all >/dev/null' EXIT
"$PX" box start --name few --pids 32 >/dev/null
"$PX" --json box exec few -- dash -c 'i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i + 1)); done' 2>/dev/null |
    jq -c '[.status, (.limits_hit[] | .limit, .value > 0)]' || true
