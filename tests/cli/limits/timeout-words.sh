try "$PX" exec --timeout 200ms -- sleep 100
try "$PX" -q exec --timeout 200ms -- sleep 100
try "$PX" exec --timeout 100s -- true
try "$PX" exec --timeout unlimited -- true
