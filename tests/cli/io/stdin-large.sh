# 10 MB through a pipe and from a file, both ways, byte for byte.
head -c 10000000 /dev/urandom >"$TMP/data"
cat "$TMP/data" | "$PX" exec -i -- cat | cmp - "$TMP/data" && echo pipe
"$PX" exec -i -- cat <"$TMP/data" >"$TMP/copy" && cmp "$TMP/copy" "$TMP/data" && echo file
