# Nothing but the three streams, whatever px was started with.
exec 5<"$TMP" 7</etc/passwd 9>"$TMP/open"
"$PX" exec -c 'ls /proc/$$/fd'
