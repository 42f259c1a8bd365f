# gVisor, as far as it runs here.
need runsc
"$PX" exec --runtime runsc --limits try -- true 2>"$TMP/err" || skip "runsc does not run here: $(sed -n '4p' "$TMP/err")"
try "$PX" exec --runtime runsc --limits try -c 'echo out; cat /proc/version | cut -d" " -f1-3; exit 3'
"$PX" --json exec --runtime runsc --limits try -c 'exit 4' | jq -c '[.status, .exit_code, .isolation.tier]'
"$PX" --json exec --runtime runsc --limits try --timeout 5s -c 'echo before; sleep 1000' | jq -c '[.status, .exit_code]'
"$PX" exec --runtime runsc --limits try -c '(echo x >/etc/x) 2>/dev/null || echo read-only; echo x >/tmp/x && echo writable'
"$PX" exec --runtime runsc --limits try -- id -un
"$PX" exec --runtime runsc --limits try --pids 50 -c 'for i in $(seq 20); do sleep 1 & done; wait; echo "twenty of fifty"'
says "$PX" exec --runtime runsc -- true
echo text | "$PX" exec --runtime runsc --limits try -i -- cat
try "$PX" exec --runtime runsc --limits try -- no-such-command 2>/dev/null
