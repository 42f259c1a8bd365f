# Without -i there is nothing to read, and nobody waits for it.
echo text | "$PX" exec -- cat
mkfifo "$TMP/silent"
exec 8<>"$TMP/silent"
timeout 20 "$PX" exec -- cat <"$TMP/silent"
echo done
