# One more command: as px exec has it, but in a box that is there.
trap '"$PX" box stop --all' EXIT
"$PX" box start --name x --timeout 30s
try "$PX" box exec x -c 'echo out; echo err >&2; exit 3'
try "$PX" box exec x -- sh -c 'kill -TERM $$'
try "$PX" box exec x --timeout 200ms -- sleep 1000
says "$PX" box exec x -- nosuchprogram
says "$PX" box exec x -- /etc/passwd
says "$PX" box exec x -w /nosuch -- true
"$PX" box exec x -e A=1 -e B=2 -w /tmp -c 'echo $A$B $PWD'
echo input | "$PX" box exec x -i -- cat
echo input | "$PX" box exec x -- cat
"$PX" box exec x --output-limit 10 -c 'echo 0123456789abcdef'
echo
"$PX" box exec x --report r.json -- echo reported
grep -o '"stdout_base64":"[^"]*"' r.json
echo 'FROM=file' >env
"$PX" box exec x --env-file env -c 'echo $FROM'
"$PX" --json box exec x -c 'echo x; exit 4' | grep -o '"status":"nonzero"\|"exit_code":4\|"stdout":"x\\n"'
CALLER_SECRET=hush "$PX" box exec x -c 'echo $CALLER_SECRET none'
CALLER_SECRET=hush "$PX" box exec x -e CALLER_SECRET -c 'echo $CALLER_SECRET'
"$PX" box exec x -c 'exit 0' >&- 2>&- <&- && echo fine
