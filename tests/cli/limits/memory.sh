# 200 MB in a box of 64: ended, and the counter that was read is named. 20 MB fit.
as_root
need jq python3
"$PX" exec --memory 64m -- python3 -c 'a = bytearray(20 << 20); print("fits")'
try "$PX" --json exec --memory 64m -- python3 -c 'a = bytearray(200 << 20); print("too much")' >"$TMP/out"
sed -n 2p "$TMP/out"
head -1 "$TMP/out" | jq -c '[.status, .exit_code, .oom_killed, .stdout, [.limits_hit[] | select(.limit == "memory") | (.counter | length > 0), .value > 0]]'
head -1 "$TMP/out" | jq -c '[([.isolation.mechanisms[] | select(startswith("memory=cgroup"))] | length), (.memory_source | startswith("cgroup")), (.memory_peak_bytes <= 67108864)]'
