# What was written before the end is there.
try "$PX" exec --timeout 500ms -c 'echo before; sleep 100' 2>/dev/null
"$PX" --json exec --timeout 500ms -c 'echo before; sleep 100' | jq -c '[.stdout, .status]' || true
