# Said by the file's name; what stands in it may be a secret and is not repeated.
printf 'A=1\0B=2\n' >"$TMP/nul"
printf '=hunter2\n' >"$TMP/noname"
head -c 1100000 /dev/zero | tr '\0' a >"$TMP/large"
says "$PX" exec --env-file "$TMP/nul" -- true
says "$PX" exec --env-file "$TMP/noname" -- true
says "$PX" exec --env-file "$TMP/large" -- true
says "$PX" exec --env-file "$TMP" -- true
"$PX" exec --env-file "$TMP/noname" -- true 2>&1 | grep hunter2 || echo 'not repeated'
