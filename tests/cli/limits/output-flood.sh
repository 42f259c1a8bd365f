# A flood of 300 MB costs px no memory: under a bound on its own address space it still works.
"$PX" exec -- head -c 300m /dev/zero | wc -c
(ulimit -v 65536; "$PX" --json exec --output-limit 100k -- head -c 300m /dev/zero) >"$TMP/out"
jq -c '[.status, .truncated.stdout_bytes]' "$TMP/out"
