# The result names what holds the box, and what is not as in a native one.
need runc crun
for runtime in runc crun; do
    "$PX" --json exec --runtime $runtime -- true >"$TMP/out"
    jq -r '.isolation.tier' "$TMP/out"
    jq -r '.isolation.mechanisms[]' "$TMP/out" | sed 's/^landlock=.*/landlock=N/;s/^ids=.*/ids=SOME/' | sort
    jq -r '.isolation.missing[]' "$TMP/out" | grep -vE '^(ids|groups): ' | sort
done
