# With -i the command waits for what is not there yet, and its end is the end although the input is still open.
mkfifo "$TMP/later"
exec 8<>"$TMP/later"
timeout 20 "$PX" exec -i -c 'echo up; read -r line; echo "got $line"' <"$TMP/later" >"$TMP/out" & px=$!
until_filled "$TMP/out"
echo something >&8
wait $px
cat "$TMP/out"
