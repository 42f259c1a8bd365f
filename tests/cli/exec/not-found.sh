try "$PX" exec -- nosuch
try "$PX" exec -- /no/such/file
try "$PX" exec -- /usr/bin/env/below
try "$PX" exec -e PATH=/nowhere -- ls
