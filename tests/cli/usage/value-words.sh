# Two of those answers in full.
try "$PX" exec --memory 12q -- true
try "$PX" exec -v project -- true
