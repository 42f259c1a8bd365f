try "$PX" exec -- nosuch
try "$PX" exec -- /no/such/file
try "$PX" exec -- /usr/bin/env/below
try "$PX" exec -e PATH=/nowhere -- ls
("$PX" exec -- ./nosuch 2>&1 || true) | grep -c -e "--work-dir DIR"
