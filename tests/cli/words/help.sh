# Every command has a help with an example; the list names them all.
"$PX" --help >"$TMP/all"
"$PX" help | cmp - "$TMP/all"
for name in exec shell box policy run test explain completion; do
    grep -q "^  $name " "$TMP/all" || echo "$name is not in the list"
    "$PX" $name --help >"$TMP/help" || echo "$name --help failed"
    "$PX" help $name | cmp - "$TMP/help"
    grep -q "^Usage: px $name" "$TMP/help" || echo "$name has no usage"
    grep -q "^Example" "$TMP/help" || echo "$name has no example"
done
status=0
"$PX" >"$TMP/bare" || status=$?
cmp "$TMP/bare" "$TMP/all" && echo $status
says "$PX" help nosuch
