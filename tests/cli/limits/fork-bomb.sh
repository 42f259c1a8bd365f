# It ends with its time, and takes everybody with it.
word=$(unique)
try "$PX" exec --pids 64 --timeout 2s -- dash -c "f() { sleep $word & f | f & }; f; sleep $word" >/dev/null 2>&1
until_gone "$word"
echo calm
