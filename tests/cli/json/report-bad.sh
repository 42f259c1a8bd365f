# A report that cannot be written is not forgotten.
try "$PX" exec --report "$TMP/no/such/dir/r.json" -- echo ran
