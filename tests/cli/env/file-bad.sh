printf 'A=1\0B=2\n' >"$TMP/nul"
printf '=x\n' >"$TMP/noname"
head -c 1100000 /dev/zero | tr '\0' a >"$TMP/large"
says "$PX" exec --env-file "$TMP/nul" -- true
says "$PX" exec --env-file "$TMP/noname" -- true
says "$PX" exec --env-file "$TMP/large" -- true
says "$PX" exec --env-file "$TMP" -- true
