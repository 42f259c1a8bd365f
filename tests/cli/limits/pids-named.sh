# The result names the limit and its counter. (pid 1 of the box is counted with the rest.)
as_root
need jq
"$PX" --json exec --pids 32 -- dash -c 'i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i + 1)); done' | jq -c '[.status, (.limits_hit[] | select(.limit == "pids") | .limit, (.counter | length > 0), .value > 0), (.pids_peak <= 33)]' || true
