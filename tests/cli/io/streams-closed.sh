# Nothing goes to a wrong place when px starts without its streams.
try "$PX" exec -c 'echo out; echo err >&2; exit 3' >&- 2>&-
try "$PX" exec -c 'echo out; exit 4' <&- >&- 2>&-
try "$PX" exec -v "$TMP:/w" -c 'echo out; echo err >&2' <&- 2>&-
