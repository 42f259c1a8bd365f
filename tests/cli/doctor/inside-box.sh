# In a box of px: its filter refuses namespaces. The doctor says so, names what it saw, and ends with 1.
mkdir p
cp "$PX" "$(dirname "$PX")/px-main" p/
"$PX" exec -v "$PWD/p:/p:ro" -- true || skip 'no box starts here'
inner() { "$PX" exec -v "$PWD/p:/p:ro" -- /p/px "$@" 2>/dev/null; }
try inner doctor >all
grep -E '^in a box|^this process|^namespaces (user|pid) |^privileges seccomp filter|^boxes *require full|^tier|^exit' all
try inner doctor -q
