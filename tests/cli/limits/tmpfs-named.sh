# A full directory explains a failure.
need jq
"$PX" --json exec --tmpfs /x:size=1m -- head -c 2m /dev/zero | jq -r .status || true
"$PX" --json exec --tmpfs /x:size=1m -c 'head -c 2m /dev/zero >/x/f' | jq -c '[.status, .exit_code, .limits_hit[0].limit, (.limits_hit[0].counter | length > 0)]' || true
"$PX" --json exec --tmpfs /x:size=1m -c 'head -c 2m /dev/zero >/x/f; exit 0' 2>/dev/null | jq -c '[.status, .limits_hit[0].limit]'
