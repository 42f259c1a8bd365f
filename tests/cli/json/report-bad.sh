# A report that cannot be written is not forgotten.
mkdir "$TMP/d"
try "$PX" exec --report "$TMP/no/such/dir/r.json" -- true
try "$PX" exec --report "$TMP/d" -- true 2>/dev/null
ls -A "$TMP/d"
