need jq
for text in true 'exit 3' 'kill -9 $$' 'kill -TERM $$'; do
    "$PX" --json exec -c "$text" | jq -c '[.status, .exit_code, .signal]' || true
done
"$PX" --json exec -c 'exit 3' >/dev/null || echo "exit $?"
"$PX" exec --json -c 'exit 3' | jq .exit_code || true
