# A command that nobody waits for: its number, its log, its end.
trap '"$PX" box stop --all' EXIT
"$PX" exec -d --name d -- sh -c 'echo out; echo err >&2; exit 3'
try "$PX" box attach d 2>err
cat err
"$PX" box logs d 2>/dev/null
"$PX" box logs d --stderr
"$PX" box exec d -d -- sh -c 'echo second; exec sleep 1000'
"$PX" --json box exec d -d -- true
try "$PX" box attach d --command 3
until [ "$("$PX" box logs d --command 2)" = second ]; do sleep 0.05; done
"$PX" box show d | sed -n '/^COMMAND/,/^$/p'
"$PX" box signal d KILL --command 2
try "$PX" box attach d --command 2
says "$PX" box attach d -i --command 1
"$PX" --json exec -d --name e -- true | sed 's/"id":"[0-9a-f]*"/"id":"#"/'
says "$PX" exec -d --name f -- nosuchprogram
"$PX" box list | sed 1d | cut -d' ' -f1
"$PX" --json box show d | grep -o '"idle_s":[0-9.]*'
