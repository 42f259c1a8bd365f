# A bounded number of processes, whoever calls; the host has as many as before. (dash gives up at the first failed fork.)
need jq
try "$PX" exec --pids 32 --timeout 30s -- dash -c 'i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i + 1)); echo $i; done' >"$TMP/out" 2>"$TMP/err"
started=$(grep -c '^[0-9]' "$TMP/out")
if [ "$started" -ge 10 ] && [ "$started" -lt 32 ]; then echo held; else echo "$started started"; fi
tail -1 "$TMP/out"
