try "$PX" --json exec --memory 12q -- true
try "$PX" exec --json -- nosuch
try "$PX" --json nosuch
