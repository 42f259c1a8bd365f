# A directory, a file without the bit, a script without its interpreter, a file of no known format.
mkdir "$TMP/d"
echo text >"$TMP/d/plain"
printf '#!/no/such/interpreter\n' >"$TMP/d/script"
printf 'no format\n' >"$TMP/d/odd"
chmod 755 "$TMP/d" "$TMP/d/script" "$TMP/d/odd"
chmod 644 "$TMP/d/plain"
try "$PX" exec -- /usr
try "$PX" exec -v "$TMP/d:/d:ro" -- /d/plain
try "$PX" exec -v "$TMP/d:/d:ro" -- /d/script
try "$PX" exec -v "$TMP/d:/d:ro" -- /d/odd
