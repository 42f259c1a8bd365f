# Beyond the limit the rest is dropped, the run goes on, and the result says so.
need jq
"$PX" exec --output-limit 1k -c 'head -c 100k /dev/zero | tr "\0" x; echo; exit 3' >"$TMP/out" 2>"$TMP/err" || echo "exit $?"
wc -c <"$TMP/out"
"$PX" --json exec --output-limit 1k -c 'head -c 100k /dev/zero | tr "\0" x; echo e >&2' | jq -c '[.status, .truncated.stdout, .truncated.stderr, .truncated.stdout_bytes, (.stdout | length) <= 2200]'
