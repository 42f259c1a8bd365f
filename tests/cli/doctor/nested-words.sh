# px in a box of px: the error names what refuses the namespaces.
mkdir p
cp "$PX" "$(dirname "$PX")/px-main" p/
"$PX" exec -v "$PWD/p:/p:ro" -- true || skip 'no box starts here'
try "$PX" exec -v "$PWD/p:/p:ro" -- /p/px exec -- true 2>&1
