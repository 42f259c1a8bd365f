# Or ends the run.
need jq
word=$(unique)
"$PX" exec --output-limit 1k --output-end -c "yes; sleep $word" >"$TMP/out" 2>/dev/null || echo "exit $?"
wc -c <"$TMP/out"
"$PX" --json exec --output-limit 1k --output-end -- yes | jq -c '[.status, .limits_hit[0].limit, (.stdout | length)]' || true
until_gone "$word"
