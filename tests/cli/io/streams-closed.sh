# Nothing goes to a wrong place when px starts without its streams.
status=0
"$PX" exec -c 'echo out; echo err >&2; exit 3' >&- 2>&- || status=$?
echo $status
status=0
"$PX" exec -c 'echo out; exit 4' <&- >&- 2>&- || status=$?
echo $status
"$PX" exec -v "$TMP:/w:ro" -c 'echo out; echo err >&2' <&- 2>&-
"$PX" exec -i -c 'cat; echo end' <&- 2>&-
