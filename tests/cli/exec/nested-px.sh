# px in a box finds no user namespace to make, and says so instead of running without one.
cp "$PX" "$TMP/inner"
try "$PX" exec -v "$TMP/inner:/inner:ro" -- /inner exec -- echo unconfined
