"$PX" exec -c 'echo out; echo err >&2' 2>"$TMP/err"
cat "$TMP/err"
"$PX" exec -c 'echo err >&2' >/dev/null
