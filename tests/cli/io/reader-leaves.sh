# The box learns it as any program in a pipeline does, and px stays silent.
timeout 20 "$PX" exec -- yes | head -1
timeout 20 "$PX" exec -c 'yes; echo "yes ended with $?" >&2' 2>"$TMP/err" | head -1
cat "$TMP/err"
