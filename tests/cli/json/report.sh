# The report has every byte, also when the output goes to the caller.
need jq
"$PX" exec --report "$TMP/r.json" -c 'printf "a\377\000b"; echo err >&2; exit 5' >"$TMP/out" 2>"$TMP/err" || echo "exit $?"
jq -r .stdout_base64 "$TMP/r.json" | base64 -d | cmp - "$TMP/out" && echo stdout
jq -r .stderr_base64 "$TMP/r.json" | base64 -d | cmp - "$TMP/err" && echo stderr
jq -c '[.exit_code, .status]' "$TMP/r.json"
"$PX" --json exec --report "$TMP/r.json" -- echo both | jq -r .stdout
jq -r .stdout "$TMP/r.json"
ls "$TMP" | grep -v -e '^out$' -e '^err$'
